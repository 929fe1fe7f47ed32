package files

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"example.org/pilotfish/internal/settings"
)

// maxFile bounds a file of certificates or keys, in bytes. Those of a whole system
// take about 250 kB.
const maxFile = 4 << 20

// handshakeTimeout bounds a handshake, also for those whose ctx does not end.
const handshakeTimeout = 10 * time.Second

// Dial connects to an address until ctx ends.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// TLS makes connections secure. It is safe for concurrent use.
type TLS struct {
	settings settings.TLS
	changed  func(error)

	mu     sync.Mutex
	read   []os.FileInfo // of the files that config was made of
	config *tls.Config
	told   string // the failure that was told last
}

// NewTLS reads the files for the first time. changed is called when they were read
// again, with why they could not be used: then those that were read before count,
// and a failure is told once.
func NewTLS(s settings.TLS, changed func(error)) (*TLS, error) {
	t := &TLS{settings: s, changed: changed}
	return t, t.load()
}

// load reads the files where they are not those that were read.
func (t *TLS) load() error {
	now, err := stats(t.settings)
	if err != nil || t.config != nil && unchanged(t.read, now) {
		return err
	}
	var f settings.Faults
	next := CheckTLS(t.settings, &f)
	if err := f.Err(); err != nil {
		return err
	}
	t.read, t.config = now, next
	return nil
}

// Over returns a Dial that makes the connections of another one secure.
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
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS with %s: %w", cfg.ServerName, err)
		}
		return c, nil
	}
}

// Certificate is that of cert_file, for servers.
func (t *TLS) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &t.current().Certificates[0], nil
}

// SelfSigned makes a certificate that only this process has, for those who do not check it.
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

// Expires is when the certificate of cert_file does; zero without one.
func (t *TLS) Expires() time.Time {
	if all := t.current().Certificates; len(all) > 0 {
		return all[0].Leaf.NotAfter
	}
	return time.Time{}
}

// current is what the files say now, or what they last said that can be used.
func (t *TLS) current() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.config
	switch err := t.load(); {
	case err != nil && t.told != err.Error():
		t.told = err.Error()
		t.changed(err)
	case t.config != before:
		t.told = ""
		t.changed(nil)
	}
	return t.config
}

// CheckTLS reads the files that the settings name. What is wrong with the settings and the files goes to f.
func CheckTLS(s settings.TLS, f *settings.Faults) *tls.Config {
	s.Check(f)
	cfg := &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.CAFile != "" {
		text, err := Read(s.CAFile, maxFile)
		cfg.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			f.Add("ca_file", "%v", err)
		case !cfg.RootCAs.AppendCertsFromPEM(text):
			f.Add("ca_file", "%s holds no certificate in PEM form", s.CAFile)
		}
	}
	if s.CertFile == "" || s.KeyFile == "" {
		return cfg
	}
	certificate, err := Read(s.CertFile, maxFile)
	if err != nil {
		f.Add("cert_file", "%v", err)
	}
	key, wrong := Read(s.KeyFile, maxFile)
	if wrong != nil {
		f.Add("key_file", "%v", wrong)
	}
	if err != nil || wrong != nil {
		return cfg
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		f.Add("cert_file", "%s and %s: %v", s.CertFile, s.KeyFile, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}

// stats are those of the files that are set.
func stats(s settings.TLS) (all []os.FileInfo, err error) {
	for _, path := range []string{s.CAFile, s.CertFile, s.KeyFile} {
		if path == "" {
			continue
		}
		info, failed := os.Stat(path)
		err = errors.Join(err, failed)
		all = append(all, info)
	}
	return all, err
}

func unchanged(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
