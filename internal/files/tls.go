package files

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/settings"
)

// maxFile is the maximum size of a file of certificates or keys, in bytes. The CA bundle
// of a system has about 250 kB.
const maxFile = 4 << 20

// HandshakeTimeout is the timeout of a TLS handshake.
const HandshakeTimeout = 10 * time.Second

// Dial connects to an address until ctx ends.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// TLS is a TLS configuration that reloads its files when they change. It is safe for concurrent use.
type TLS struct {
	settings settings.TLS
	changed  func(error)

	mu       sync.Mutex
	read     []os.FileInfo // of the files of config
	config   *tls.Config
	reported string // the last reported error
}

// NewTLS reads the files. changed is called after a later change of the files: with nil if they are used
// from then on, or with an error if the previous configuration stays in use. The same error is reported
// once.
func NewTLS(s settings.TLS, changed func(error)) (*TLS, error) {
	t := &TLS{settings: s, changed: changed}
	return t, t.load()
}

// load reads the files if they have changed. New connections wait for it.
func (t *TLS) load() error {
	now := stats(t.settings)
	if t.config != nil && slices.EqualFunc(t.read, now, unchanged) {
		return nil
	}
	var f settings.Faults
	next := read(t.settings, &f).config(t.settings, &f)
	if err := f.Err(); err != nil {
		return err
	}
	t.read, t.config = now, next
	return nil
}

// Over returns a Dial that adds TLS to the connections of another Dial.
func (t *TLS) Over(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		cfg := t.current().Clone()
		if cfg.ServerName == "" {
			if cfg.ServerName, _, err = net.SplitHostPort(address); err != nil {
				cfg.ServerName = address
			}
		}
		c := tls.Client(&records{Conn: raw}, cfg)
		ctx, cancel := context.WithTimeout(ctx, HandshakeTimeout)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS with %s: %w", cfg.ServerName, err)
		}
		return c, nil
	}
}

// Certificate returns the certificate of cert_file, for servers.
func (t *TLS) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &t.current().Certificates[0], nil
}

// SelfSigned returns a new self-signed certificate, for clients that do not verify it.
func SelfSigned(now time.Time) (*tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pilotfish"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// Expires returns the expiry time of the certificate of cert_file; zero without one.
func (t *TLS) Expires() time.Time {
	if all := t.current().Certificates; len(all) > 0 {
		return all[0].Leaf.NotAfter
	}
	return time.Time{}
}

// current returns the configuration from the files, or the last valid one.
func (t *TLS) current() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.config
	switch err := t.load(); {
	case err != nil && t.reported != err.Error():
		t.reported = err.Error()
		t.changed(err)
	case t.config != before:
		t.reported = ""
		t.changed(nil)
	}
	return t.config
}

// CheckTLS reads the files of the settings, and adds errors in settings and files to f.
func CheckTLS(s settings.TLS, f *settings.Faults) { read(s, f).config(s, f) }

// stats returns the FileInfo of the configured files; nil for a missing one.
func stats(s settings.TLS) (all []os.FileInfo) {
	for _, path := range []string{s.CAFile, s.CertFile, s.KeyFile} {
		if path != "" {
			info, _ := os.Stat(path) // reading the file will report the error
			all = append(all, info)
		}
	}
	return all
}

func unchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// texts are the contents of the configured files; nil for none.
type texts struct{ ca, cert, key []byte }

func read(s settings.TLS, f *settings.Faults) (t texts) {
	for _, file := range []struct {
		key, path string
		to        *[]byte
	}{{"ca_file", s.CAFile, &t.ca}, {"cert_file", s.CertFile, &t.cert}, {"key_file", s.KeyFile, &t.key}} {
		if file.path == "" {
			continue
		}
		var err error
		if *file.to, err = Read(file.path, maxFile); err != nil {
			f.Add(file.key, "%v", err)
		}
	}
	return t
}

// config makes a TLS configuration of the texts.
func (t texts) config(s settings.TLS, f *settings.Faults) *tls.Config {
	if (s.CertFile == "") != (s.KeyFile == "") {
		f.Add("", "cert_file and key_file must be set together")
	}
	cfg := &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if t.ca != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(t.ca) {
			f.Add("ca_file", "%s contains no PEM certificate", s.CAFile)
		}
	}
	if t.cert != nil && t.key != nil {
		pair, err := tls.X509KeyPair(t.cert, t.key)
		if err != nil {
			f.Add("cert_file", "%s and %s: %v", s.CertFile, s.KeyFile, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg
}
