package report

import (
	"context"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Probe requests the load of upstreams, all at the same time, and returns when all have responded or the timeout has
// passed. The loads are in the order of the addresses; nil is a probe that failed. project is the job's; "" is none.
func (s *Source) Probe(ctx context.Context, addresses []string, project string, timeout time.Duration) []*pool.Hint {
	path := s.cfg.Settings.Probe
	if project != "" {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "project=" + url.QueryEscape(project)
	}
	loads := make([]*pool.Hint, len(addresses))
	var probes sync.WaitGroup
	for i, address := range addresses {
		probes.Go(func() {
			load, err := s.probe(ctx, upstreamURL(address, path), timeout)
			if err == nil {
				loads[i] = &load
			}
			if ctx.Err() == nil {
				s.cfg.Probed(address, err)
			}
		})
	}
	probes.Wait()
	return loads
}

// probe requests the load of one upstream, which is in the header of the response, as in one to a job. Its time is that of
// the exchange, because the upstream's clock can differ.
func (s *Source) probe(ctx context.Context, url string, timeout time.Duration) (load pool.Hint, err error) {
	err = get(ctx, s.client, request{url: url, accept: "*/*", max: maxDrained, timeout: timeout}, func(resp response) error {
		hint, err := s.cfg.Hint(resp.header, resp.at)
		if err != nil {
			return err
		}
		load, load.At = hint, resp.at
		_, err = io.Copy(io.Discard, resp.body)
		return err
	})
	return load, err
}
