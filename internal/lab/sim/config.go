package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// Source yields a trace's jobs in order of their offsets.
type Source interface {
	// Next returns the next job, or io.EOF at the end.
	Next() (trace.Job, error)
}

// Config is one run: a fleet, the sidecars before it, and how they choose.
type Config struct {
	// Source is the jobs; required.
	Source Source
	// Observe is called once for each job that ends; required.
	Observe func(*Result)
	// Sample is called every SampleEvery for the figures over time; optional.
	Sample      func(*Sample)
	SampleEvery time.Duration
	// Seed is that of every random stream of the run.
	Seed uint64
	// End stops the run; jobs that are not finished are not observed. 0 runs
	// until the last job ends.
	End time.Duration

	Fleet   Fleet
	Sidecar Sidecar
}

// Fleet is the modelled servers.
type Fleet struct {
	Servers    int   // default 14
	Cores      int   // of each; default 16
	CacheBytes int64 // of each; default 64 GiB
	// Backlog is how many stalled joblets make a server so busy that it
	// accepts no connections; 0 is no limit. Connections then time out.
	Backlog int
	// Preemption is nil when servers live for ever.
	Preemption *Preemption
}

// Sidecar is how each sidecar is set up.
type Sidecar struct {
	Count int // default 1
	// Policy and Detector choose; both are required, but with Clairvoyant no Policy.
	Policy   selection.Policy
	Detector func() overload.Detector
	// Clairvoyant stands for a policy that knows what no sidecar can know, the
	// true state of every server and the length of every joblet, as a limit.
	Clairvoyant bool
	// Interval is the time between two reports of one upstream to one
	// sidecar, 20 % of it jitter; default 5 s.
	Interval time.Duration
	// Freeze, when positive, is when reports stop coming, for FreezeFor.
	Freeze, FreezeFor time.Duration
	// Hints turns on the load hint on answers.
	Hints bool
	// Attempts, ConnectTimeout, FirstByte and Budget are as in
	// dispatch.RetrySettings; 0 is its default. A negative ConnectTimeout waits
	// for ever, as the thesis's experiments did.
	Attempts       int
	ConnectTimeout time.Duration
	FirstByte      time.Duration
	Budget         float64
	// Breaker sets the breakers; the zero value is breaker.Default.
	Breaker breaker.Settings
	// Wait bounds the wait for an eligible upstream where the job does not
	// say; default 240 s.
	Wait time.Duration
}

// Preemption is how servers come and go.
type Preemption struct {
	// Servers are pre-emptible, the first ones; default 10 of 14.
	Servers int
	// Early is the share of lives that end before Life, at a time uniform over it.
	Early float64
	// Life is the longest life; default 24 h. Notice comes before each end; default 30 s.
	Life, Notice time.Duration
	// AwayMin and AwayMax bound how long a server stays away; default 5 and 10 min.
	AwayMin, AwayMax time.Duration
	// Discovery is how long the sidecars take to hear of a change; default 2 s.
	Discovery time.Duration
}

func (c *Config) validate() error {
	if c.Source == nil || c.Observe == nil || c.Sidecar.Detector == nil || (c.Sidecar.Policy == nil) != c.Sidecar.Clairvoyant {
		return errors.New("sim: Source, Observe, Detector, and either Policy or Clairvoyant are required")
	}
	if c.Sample != nil && c.SampleEvery <= 0 {
		return fmt.Errorf("sim: SampleEvery %v must be positive", c.SampleEvery)
	}
	f, s := &c.Fleet, &c.Sidecar
	if f.Servers == 0 {
		f.Servers = 14
	}
	if f.Cores == 0 {
		f.Cores = 16
	}
	if f.CacheBytes == 0 {
		f.CacheBytes = 64 << 30
	}
	if s.Count == 0 {
		s.Count = 1
	}
	if s.Interval == 0 {
		s.Interval = 5 * time.Second
	}
	retry := dispatch.DefaultRetry()
	s.Attempts = cmp.Or(s.Attempts, retry.Attempts)
	s.ConnectTimeout = cmp.Or(s.ConnectTimeout, retry.ConnectTimeout)
	s.FirstByte = cmp.Or(s.FirstByte, retry.FirstByte)
	s.Budget = cmp.Or(s.Budget, retry.Budget)
	s.Breaker = cmp.Or(s.Breaker, breaker.Default())
	if s.Wait == 0 {
		s.Wait = 240 * time.Second
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Servers", int64(f.Servers)}, {"Cores", int64(f.Cores)}, {"CacheBytes", f.CacheBytes},
		{"Count", int64(s.Count)}, {"Interval", int64(s.Interval)}, {"Attempts", int64(s.Attempts)}, {"Wait", int64(s.Wait)},
	} {
		if n.value < 1 {
			return fmt.Errorf("sim: %s %d must be positive", n.name, n.value)
		}
	}
	if p := f.Preemption; p != nil {
		return p.validate(f.Servers)
	}
	return nil
}

// retry is what the sidecars' dispatchers are set to.
func (s *Sidecar) retry() dispatch.RetrySettings {
	r := dispatch.RetrySettings{Attempts: s.Attempts, ConnectTimeout: s.ConnectTimeout, FirstByte: s.FirstByte, Budget: s.Budget}
	if r.ConnectTimeout < 0 { // it still bounds the dial to a server that is gone
		r.ConnectTimeout = dispatch.DefaultRetry().ConnectTimeout
	}
	return r
}

func (p *Preemption) validate(servers int) error {
	if p.Life == 0 {
		p.Life = 24 * time.Hour
	}
	if p.Notice == 0 {
		p.Notice = 30 * time.Second
	}
	if p.AwayMin == 0 && p.AwayMax == 0 {
		p.AwayMin, p.AwayMax = 5*time.Minute, 10*time.Minute
	}
	if p.Discovery == 0 {
		p.Discovery = 2 * time.Second
	}
	if p.Servers < 0 || p.Servers > servers {
		return fmt.Errorf("sim: %d pre-emptible servers of %d", p.Servers, servers)
	}
	if p.Early < 0 || p.Early > 1 {
		return fmt.Errorf("sim: Early %v is not a share from 0 to 1", p.Early)
	}
	if p.Life <= p.Notice || p.AwayMax < p.AwayMin || p.AwayMin <= 0 || p.Discovery < 0 {
		return fmt.Errorf("sim: life %v, notice %v, away %v to %v and discovery %v do not fit together", p.Life, p.Notice, p.AwayMin, p.AwayMax, p.Discovery)
	}
	return nil
}
