package report

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/prometheus/common/model"
)

// Server is a Prometheus server that scrapes the upstreams.
type Server struct {
	// URL is where it serves, by http or https; it may have a path. Default
	// "http://127.0.0.1:9090".
	URL string
	// InstanceLabel is the label that bears an upstream's address, just as
	// discovery tells it. Default "instance".
	InstanceLabel string
	// MaxBytes bounds its answer, compressed and not. Default 32 MiB, which
	// holds some ten thousand upstreams.
	MaxBytes int64
}

func (s *Server) fill() {
	or(&s.URL, "http://127.0.0.1:9090")
	or(&s.InstanceLabel, "instance")
	or(&s.MaxBytes, 32<<20)
}

// check says what is wrong with a filled Server.
func (s Server) check() error {
	u, err := url.Parse(s.URL)
	if err == nil && u.User != nil {
		return errors.New("prometheus.url holds credentials, which do not belong there") // nor here
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("prometheus.url is %q, not an address such as \"http://127.0.0.1:9090\"", s.URL)
	}
	if !model.LegacyValidation.IsValidLabelName(s.InstanceLabel) || slices.Contains(taken, s.InstanceLabel) {
		return fmt.Errorf("prometheus.instance_label is %q, not a label that can bear an address", s.InstanceLabel)
	}
	return nil
}
