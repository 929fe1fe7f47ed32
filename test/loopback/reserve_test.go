package loopback

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReserve(t *testing.T) {
	address, err := Reserve()
	require.NoError(t, err)
	_, err = net.Dial("tcp", address)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.ErrorIs(t, bind(t, address), syscall.EADDRINUSE, "as any port it would be refused, too")
	l, err := net.Listen("tcp", address)
	require.NoError(t, err, "a server may have it")
	assert.NoError(t, l.Close())
}

// bind binds a socket that shares no port, as when the system looks for any.
func bind(t *testing.T, address string) error {
	t.Helper()
	_, digits, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(digits)
	require.NoError(t, err)
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer func() { assert.NoError(t, syscall.Close(socket)) }()
	return syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port})
}
