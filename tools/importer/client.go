// Package importer is an example of a program that imports pilotfish's packages: a
// client that chooses the upstream itself, without a sidecar. It is a separate
// module, so it can import only what other modules can.
package importer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"example.org/pilotfish/pkg/selection"
)

// Client posts jobs to the upstream that its policy picks.
type Client struct {
	HTTP   *http.Client
	Policy selection.Policy
	Rand   *rand.Rand

	mu       sync.Mutex
	upstream []string // sorted
	inFlight map[string]float64
}

// New returns a client of these upstreams, each a host:port.
func New(policy selection.Policy, rng *rand.Rand, upstreams ...string) *Client {
	return &Client{
		HTTP: http.DefaultClient, Policy: policy, Rand: rng,
		upstream: slices.Sorted(slices.Values(upstreams)), inFlight: map[string]float64{},
	}
}

// Post posts a job for a project. After a failure it tries the other upstreams.
func (c *Client) Post(project uint64, job string) (result string, err error) {
	left := slices.Clone(c.upstream)
	for len(left) > 0 {
		at := c.claim(project, left)
		one, failure := c.try(left[at], job)
		if failure == nil {
			return one, nil
		}
		err = errors.Join(err, failure)
		left = slices.Delete(left, at, at+1)
	}
	return "", err
}

// claim picks one of the upstreams and counts the job there.
func (c *Client) claim(project uint64, upstreams []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	views := make([]selection.View, len(upstreams))
	for i, address := range upstreams {
		views[i] = selection.View{
			ID: selection.UpstreamID(address), InFlight: c.inFlight[address], Jobs: c.inFlight[address],
		}
	}
	at := c.Policy.Pick(selection.Job{Project: project, Fetch: 5}, views, c.Rand)
	c.inFlight[upstreams[at]]++
	return at
}

func (c *Client) try(upstream, job string) (string, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight[upstream]--
	}()
	res, err := c.HTTP.Post("http://"+upstream+"/v1/jobs", "application/json", strings.NewReader(job))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s responded with %s", upstream, res.Status)
	}
	return string(text), err
}
