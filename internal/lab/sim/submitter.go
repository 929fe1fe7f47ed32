package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Submitters is what people do who wait for high jobs.
type Submitters struct {
	// Patience is how long they wait for an answer to begin. Then they give it up
	// and send the job again (Turner, 2.3: most do after three seconds). 0 is as
	// long as the job may take.
	Patience time.Duration `yaml:"patience"`
	// Again is how many times they send a job again.
	Again int `yaml:"again"`
}

// Check refuses nonsense.
func (v Submitters) Check(f *settings.Faults) {
	f.NotNegative("patience", v.Patience)
	f.Within("again", v.Again, 0, 1000)
	if v.Again > 0 && v.Patience == 0 {
		f.Add("again", "%d times, but patience is without an end", v.Again)
	}
}

// impatience is the end of a submitter's patience.
type impatience job

// expectAnswer plans when the submitter of a job loses patience.
func (w *world) expectAnswer(j *job) {
	v := &w.cfg.Submitters
	if v.Patience > 0 && j.priority == selection.High && j.again < v.Again {
		w.events.add(w.now+v.Patience, rankTimeout, (*impatience)(j))
	}
}

// happen gives the job up wherever it is, and sends it again. Events that are
// planned for the old one find that it has ended.
func (x *impatience) happen(w *world) {
	j, now := (*job)(x), w.time(w.now)
	if j.ended || j.answering >= 0 {
		return
	}
	if j.server != nil {
		j.server.abandon(j)
	}
	if j.assignment != nil {
		j.assignment.Done(now, pool.Gone)
	} else {
		j.side.dispatch.GiveUp(j.dispatch)
	}
	j.ended = true
	delete(j.side.jobs, j.dispatch)
	next := j.anew()
	next.again++
	j.side.submit(w, next)
	j.side.serve(w)
}

// anew is the job as its submitter sends it again.
func (j *job) anew() *job {
	next := *j
	next.ended, next.watched, next.dispatch = false, never, nil
	next.on = nil
	next.forgetAttempt()
	return &next
}
