package main

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/proxy"
)

// Limits of the admin port: the number of connections, and the idle timeout.
const (
	adminConns = 256
	adminIdle  = 10 * time.Second
)

func (s *sidecar) newServers() (all servers, err error) {
	errorLog, _ := zap.NewStdLogAt(s.log.Quiet, zap.WarnLevel) // it fails only for unknown levels
	all.jobs = proxy.NewServer(s, proxy.ServerConfig{Conns: s.first.Submitters.Connections, Budget: s.budget, ErrorLog: errorLog})
	shown, err := s.meshCertificate()
	if err != nil {
		return all, err
	}
	all.mesh = mesh.NewServer(mesh.ServerConfig{
		Filter: s.filter, Ready: s.refusal, Budget: s.budget, Streams: s.first.Submitters.Connections, Certificate: shown, ErrorLog: errorLog,
	})
	all.admin = proxy.NewServer(s.admin(), proxy.ServerConfig{ErrorLog: errorLog, Conns: adminConns, IdleTimeout: adminIdle, Unframed: true})
	return all, nil
}

// meshCertificate returns the source of the mesh port's certificate; nil without TLS.
func (s *sidecar) meshCertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	switch s.first.Mesh.TLS {
	case "":
		return nil, nil
	case mesh.SelfSigned:
		own, err := files.SelfSigned(time.Now())
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }, err
	}
	var err error
	s.shown, err = s.newTLS("mesh.tls", s.first.Mesh.Files())
	return s.shown.Certificate, err
}

func (s *sidecar) admin() http.Handler {
	return admin.New(admin.Config{
		Metrics: s.metrics.Handler(),
		Now:     s.now,
		Points:  s.points,
		About:   s.about,
		Events:  s.events,
		Describe: func(body io.Reader, length int64) (intake.Facts, error) {
			return s.current.Load().describe(body, length, s.budget)
		},
		Explain:      s.balancer.Explain,
		Drain:        s.drainByHand,
		Reload:       s.reread,
		Write:        func() bool { return s.current.Load().cfg.AdminWrite },
		BrowserCheck: s.browserCheck,
		TokenFile:    func() string { return s.current.Load().cfg.AdminTokenFile },
	})
}

// describe reads the body of a job that is not submitted. The body counts in the budget while it is read.
func (g *generation) describe(body io.Reader, length int64, budget *intake.Budget) (intake.Facts, error) {
	kept, err := intake.ReadBody(body, length, int64(g.cfg.Job.MaxBody), budget)
	if err != nil {
		return intake.Facts{}, err
	}
	defer kept.Release()
	if !kept.Whole() {
		return intake.Facts{}, intake.ErrNoRoom
	}
	d, err := g.reader.Describe(intake.Head{Method: http.MethodPost, Path: "/"}, kept.Bytes(), true)
	if err == nil && d.Unread != "" {
		err = errors.New(d.Unread)
	}
	g.jobs.Tokenize(&d.Facts, kept.Bytes())
	return d.Facts, err
}
