package files_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/test/certs"
)

// serve starts a server that requires client certificates and greets clients by the name in
// theirs.
func serve(t *testing.T, servers, clients *certs.Authority) (address string) {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AddCert(clients.Cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{servers.TLS("upstream.test")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s := c.(*tls.Conn)
				if s.Handshake() == nil {
					_, _ = io.WriteString(s, "hello "+s.ConnectionState().PeerCertificates[0].Subject.CommonName)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// client is the files of a TLS configuration.
type client struct {
	t        *testing.T
	settings settings.TLS
	changes  []error
	secure   *files.TLS
	dial     files.Dial
}

func newClient(t *testing.T, ca *certs.Authority, name string) *client {
	t.Helper()
	folder := t.TempDir()
	c := &client{t: t, settings: settings.TLS{
		CAFile: filepath.Join(folder, "ca.pem"), CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"),
	}}
	c.write(ca, name)
	return c
}

// write replaces the files, like a Kubernetes secret volume.
func (c *client) write(ca *certs.Authority, name string) {
	c.t.Helper()
	cert, key := ca.Pair(name)
	for path, text := range map[string][]byte{c.settings.CAFile: certs.PEM(ca.Cert.Raw), c.settings.CertFile: cert, c.settings.KeyFile: key} {
		c.replace(path, text)
	}
}

func (c *client) replace(path string, text []byte) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(c.t, os.Rename(path+".new", path))
}

func (c *client) open() {
	c.t.Helper()
	var err error
	c.secure, err = files.NewTLS(c.settings, func(err error) { c.changes = append(c.changes, err) })
	require.NoError(c.t, err)
	c.dial = c.secure.Over((&net.Dialer{}).DialContext)
}

// hello returns the server's greeting.
func (c *client) hello(address string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := c.dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	return string(text), err
}

// New connections use changed files. While the files are invalid, the last valid ones are used.
func TestFilesAreReadAgain(t *testing.T) {
	old, next := certs.New(t), certs.New(t)
	before, after := serve(t, old, old), serve(t, next, next)
	c := newClient(t, old, "first")
	c.open()
	text, err := c.hello(before)
	require.NoError(t, err)
	assert.Equal(t, "hello first", text)
	_, err = c.hello(after)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	assert.Empty(t, c.changes)
	pair, err := tls.LoadX509KeyPair(c.settings.CertFile, c.settings.KeyFile)
	require.NoError(t, err)
	assert.Equal(t, pair.Leaf.NotAfter, c.secure.Expires())

	c.replace(c.settings.KeyFile, []byte("not yet\n"))
	for range 2 {
		text, err = c.hello(before)
		require.NoError(t, err)
		assert.Equal(t, "hello first", text)
	}
	require.Len(t, c.changes, 1, "it is reported once")
	assert.ErrorContains(t, c.changes[0], c.settings.KeyFile)
	require.NoError(t, os.Remove(c.settings.CAFile))
	_, err = c.hello(before)
	require.NoError(t, err)
	require.Len(t, c.changes, 2)
	assert.ErrorContains(t, c.changes[1], c.settings.CAFile)

	c.write(next, "second")
	text, err = c.hello(after)
	require.NoError(t, err)
	assert.Equal(t, "hello second", text)
	require.Len(t, c.changes, 3)
	assert.NoError(t, c.changes[2])
}

func TestServerVerification(t *testing.T) {
	ca := certs.New(t)
	address := serve(t, ca, ca)
	c := newClient(t, ca, "pilotfish")
	c.settings.CertFile, c.settings.KeyFile = "", ""
	c.open()
	assert.Zero(t, c.secure.Expires())
	c = newClient(t, ca, "pilotfish")
	for name, fault := range map[string]string{"": "", "upstream.test": "", "other.test": "not other.test"} {
		c.settings.ServerName = name
		c.open()
		text, err := c.hello(address)
		if fault == "" {
			require.NoError(t, err, name)
			assert.Equal(t, "hello pilotfish", text)
		} else {
			assert.ErrorContains(t, err, fault)
		}
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	c := newClient(t, certs.New(t), "pilotfish")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for fault, s := range map[string]settings.TLS{
		"no such file or directory":   {CAFile: empty + "x"},
		"contains no PEM certificate": {CAFile: empty},
		"is not a regular file":       {CAFile: filepath.Dir(empty)},
		"failed to find any PEM data": {CertFile: empty, KeyFile: empty},
		"private key does not match":  {CertFile: c.settings.CAFile, KeyFile: c.settings.KeyFile},
		"may have been switched":      {CertFile: c.settings.KeyFile, KeyFile: empty},
	} {
		_, err := files.NewTLS(s, nil)
		assert.ErrorContains(t, err, fault)
	}
}
