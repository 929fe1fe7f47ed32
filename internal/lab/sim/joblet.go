package sim

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// phase is a job's place in the chain of its joblets (the thesis, 3.4).
type phase uint8

const (
	feedSource phase = iota
	sharedOperators
	operators
	outputFeed
	finished
)

// key names a joblet's result: equal keys are computed once.
type key struct {
	project uint64
	version int64
	shared  uint64
	number  int64 // of the job, where the result is nobody else's
	phase   phase
}

// joblet is one piece of work on one core, for one or more jobs.
type joblet struct {
	key      key
	server   *server
	epoch    int // of the server's life that it belongs to
	priority selection.Priority
	seq      uint64 // submission order of its first job
	work     time.Duration
	bytes    int64
	jobs     []*job
	begun    time.Duration
	running  bool
	place    int // in the queue
}

// jobletQueue is a binary heap by priority, then submission.
type jobletQueue []*joblet

func (q jobletQueue) less(i, j int) bool {
	if q[i].priority != q[j].priority {
		return q[i].priority > q[j].priority
	}
	return q[i].seq < q[j].seq
}

func (q jobletQueue) swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *jobletQueue) push(b *joblet) {
	b.place = len(*q)
	*q = append(*q, b)
	q.up(b.place)
}

func (q *jobletQueue) pop() *joblet {
	b := (*q)[0]
	q.remove(b)
	return b
}

func (q *jobletQueue) remove(b *joblet) {
	i, last := b.place, len(*q)-1
	q.swap(i, last)
	(*q)[last] = nil
	*q = (*q)[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
}

func (q jobletQueue) up(i int) {
	for i > 0 && q.less(i, (i-1)/2) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q jobletQueue) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q); c++ {
			if q.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
