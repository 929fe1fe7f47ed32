package files_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/settings"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{t, cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// pair returns a certificate for a name and 127.0.0.1, and its key, as PEM.
func (a *authority) pair(name string) (cert, key []byte) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, &private.PublicKey, a.key)
	require.NoError(a.t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// serve starts a server that requires client certificates and greets clients by the name in
// theirs.
func serve(t *testing.T, servers, clients *authority) (address string) {
	t.Helper()
	cert, key := servers.pair("upstream.test")
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(clients.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
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

func newClient(t *testing.T, ca *authority, name string) *client {
	t.Helper()
	folder := t.TempDir()
	c := &client{t: t, settings: settings.TLS{
		CAFile: filepath.Join(folder, "ca.pem"), CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"),
	}}
	c.write(ca, name)
	return c
}

// write replaces the files, like a Kubernetes secret volume.
func (c *client) write(ca *authority, name string) {
	c.t.Helper()
	cert, key := ca.pair(name)
	for path, text := range map[string][]byte{c.settings.CAFile: ca.pem, c.settings.CertFile: cert, c.settings.KeyFile: key} {
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
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
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
	old, next := newAuthority(t), newAuthority(t)
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
	ca := newAuthority(t)
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
	c := newClient(t, newAuthority(t), "pilotfish")
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
