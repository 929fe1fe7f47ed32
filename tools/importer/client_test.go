package importer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"example.org/pilotfish/pkg/fakeupstream"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// started returns a client of three upstreams.
func started(t *testing.T) (*Client, map[string]*fakeupstream.Upstream) {
	policy, err := selection.New("bounded-hash")
	if err != nil {
		t.Fatal(err)
	}
	ups, addresses := map[string]*fakeupstream.Upstream{}, []string(nil)
	for range 3 {
		up := fakeupstream.New(t, fakeupstream.Options{})
		ups[up.Address()] = up
		addresses = append(addresses, up.Address())
	}
	return New(policy, rand.New(rand.NewPCG(1, 2)), addresses...), ups
}

// The jobs of a project go to one upstream, and to another when it fails.
func TestJobsOfAProjectStayTogether(t *testing.T) {
	c, ups := started(t)
	post := func() {
		t.Helper()
		result, err := c.Post(12345, fakeupstream.ExampleJob())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(result, `"availability":"in stock"`) {
			t.Errorf("the result is %q", result)
		}
	}
	for range 5 {
		post()
	}
	var home *fakeupstream.Upstream
	for _, up := range ups {
		switch len(up.Jobs()) {
		case 0:
		case 5:
			home = up
		default:
			t.Fatalf("%s had %d jobs, want none or all 5", up.Address(), len(up.Jobs()))
		}
	}
	if home == nil {
		t.Fatal("no upstream had the jobs")
	}
	home.SetFault(fakeupstream.Fault{Cut: fakeupstream.CutRST, CutAfter: fakeupstream.BeforeHeaders})
	post()
	if len(home.Jobs()) != 6 {
		t.Errorf("the project's upstream had %d jobs, want 6", len(home.Jobs()))
	}
	for _, up := range ups {
		up.Kill()
	}
	if _, err := c.Post(12345, fakeupstream.ExampleJob()); err == nil || strings.Count(err.Error(), "Post ") != 3 {
		t.Errorf("with all upstreams dead the error is %v", err) // refused, or EOF on an existing connection
	}
}

// mostCores is a policy that is defined outside of pilotfish.
type mostCores struct{}

func (mostCores) Pick(_ selection.Job, views []selection.View, rng *rand.Rand) int {
	var least selection.Least
	for i := range views {
		least.Offer(i, -views[i].Cores, rng)
	}
	return least.Index()
}

func TestOwnPolicy(t *testing.T) {
	err := policytest.Check(mostCores{}, func(_ selection.Job, views []selection.View) []float64 {
		most := policytest.Lowest(views, policytest.All(views), func(v selection.View) float64 { return -v.Cores })
		return policytest.Evenly(len(views), most)
	})
	if err != nil {
		t.Error(err)
	}
}
