//go:build soak

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// books hold for every job how it ended for its submitter, what came of it to
// upstreams, and what the sidecar logged.
type books struct {
	mu   sync.Mutex
	jobs []*entry
	open sync.WaitGroup // visits that have not ended

	unnamed int // lines of the sidecar for jobs that were left before they were read
	unknown int // visits and lines of jobs that nobody submitted
}

// entry is one job.
type entry struct {
	endings []ending
	visits  []*visit // in the order of arrival
	logged  []logged
}

// ending is what a submitter got.
type ending struct {
	kind   endingKind
	status int
	visit  string // the answer's own number; "" for an answer of pilotfish
	right  bool   // the body is as it should be
	text   string // of what went wrong
}

type endingKind string

const (
	whole   endingKind = "whole"   // an answer of an upstream
	cut     endingKind = "cut"     // the beginning of one
	own     endingKind = "own"     // an answer of pilotfish
	aborted endingKind = "aborted" // by the submitter itself
	nothing endingKind = "nothing" // refused, or a connection that broke: there is no excuse
)

// visit is an attempt as its upstream sees it.
type visit struct {
	books    *books
	number   int
	upstream string
	fault    fault

	read       bool // the job was read in full
	damaged    bool // and is not what the submitter sent
	notStarted bool // and was turned away
	wrote      bool // some byte of an answer may have left
	whole      bool // all of it did
	status     int

	// What the sidecar's log adds.
	attempt   int  // its number
	withdrawn bool // the sidecar gave it up by itself
}

// logged is the sidecar's line for a job.
type logged struct {
	Session  string
	Status   int
	Outcome  string
	Reason   string
	Refused  bool `json:"retry_refused"` // for the retry budget alone
	Attempts []attempted
}

// attempted is an attempt in the sidecar's log.
type attempted struct {
	Upstream, Outcome string
	Repeated          bool
}

const sessionPrefix = "soak-"

// submit opens the books for the next job and returns its number.
func (b *books) submit() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = append(b.jobs, &entry{})
	return strconv.Itoa(len(b.jobs) - 1)
}

// of returns a job's entry; b.mu is held.
func (b *books) of(job string) *entry {
	n, err := strconv.Atoi(job)
	if err != nil || n < 0 || n >= len(b.jobs) {
		return nil
	}
	return b.jobs[n]
}

func (b *books) end(job string, e ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.of(job)
	j.endings = append(j.endings, e)
}

// arrive opens a visit; end it with left.
func (b *books) arrive(job, upstream string, f fault) *visit {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open.Add(1)
	v := &visit{books: b, upstream: upstream, fault: f}
	if j := b.of(job); j != nil {
		v.number = len(j.visits)
		j.visits = append(j.visits, v)
	} else {
		b.unknown++
	}
	return v
}

func (v *visit) left() { v.books.open.Done() }

// line takes a line of the sidecar's log.
func (b *books) line(text []byte) {
	var l logged
	err := json.Unmarshal(text, &l)
	b.mu.Lock()
	defer b.mu.Unlock()
	job, ours := strings.CutPrefix(l.Session, sessionPrefix)
	switch j := b.of(job); {
	case err == nil && ours && j != nil:
		j.logged = append(j.logged, l)
	case err == nil && l.Session == "" && l.Reason == "submitter-gone" && len(l.Attempts) == 0:
		b.unnamed++
	default:
		b.unknown++
	}
}

// audit holds each job against the rules.
func (b *books) audit(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Zero(t, b.unknown, "jobs that nobody submitted")
	told, retried, refused := 0, 0, 0
	for n, j := range b.jobs {
		j.inOrder()
		for _, l := range j.logged {
			retried += len(l.Attempts) - min(len(l.Attempts), 1)
			if l.Refused {
				refused++
			}
		}
		fault := j.fault()
		if fault == "" {
			continue
		}
		if told++; told > 20 {
			break
		}
		t.Errorf("job %d: %s\n  endings %+v\n  logged %+v", n, fault, j.endings, j.logged)
		for _, v := range j.visits {
			t.Errorf("  visit %d at %s, %v: read %t, not started %t, wrote %t, whole %t, status %d",
				v.number, v.upstream, v.fault, v.read, v.notStarted, v.wrote, v.whole, v.status)
		}
	}
	// The budget is there for the moment when hundreds of jobs hang at the only upstream left.
	assert.LessOrEqual(t, refused, retried, "more retries were refused for the budget than were made")
}
