package dispatch

import (
	"container/heap"
	"container/list"
)

// lines holds the queued jobs of one priority, in a line for each project. That a project is at its limit costs
// the same however many of its jobs wait.
type lines struct {
	of    map[uint64]*line // by project
	order list.List        // of *line, by the numbers of their first jobs
	all   list.List        // of *Job, by number
}

// line holds the queued jobs of one project. It is not empty.
type line struct {
	jobs  list.List     // of *Job, by number
	place *list.Element // in the order of lines
}

func newLines() lines { return lines{of: map[uint64]*line{}} }

func jobOf(e *list.Element) *Job { return e.Value.(*Job) }

func (l *line) first() *Job { return jobOf(l.jobs.Front()) }

// firstOf returns the first job of the line at a place.
func firstOf(place *list.Element) *Job { return place.Value.(*line).first() }

// push adds a job whose number is the highest.
func (ls *lines) push(j *Job) {
	l := ls.of[j.Project]
	if l == nil {
		l = &line{}
		l.place = ls.order.PushBack(l)
		ls.of[j.Project] = l
	}
	j.wait.place, j.wait.among = l.jobs.PushBack(j), ls.all.PushBack(j)
}

// remove removes a job.
func (ls *lines) remove(j *Job) {
	l := ls.of[j.Project]
	was := l.first()
	l.jobs.Remove(j.wait.place)
	ls.all.Remove(j.wait.among)
	j.wait.place, j.wait.among = nil, nil
	if l.jobs.Len() == 0 {
		ls.order.Remove(l.place)
		delete(ls.of, j.Project)
		return
	}
	if was != j {
		return
	}
	for next := l.place.Next(); next != nil && firstOf(next).wait.number < l.first().wait.number; next = l.place.Next() {
		ls.order.MoveAfter(l.place, next)
	}
}

// cursor goes through jobs by number. Its methods must be called in turn: job, and after with its result.
type cursor struct {
	line *list.Element // the next line whose first job was not returned yet; nil if there is none
	rest followers
}

// followers is a heap of queued jobs, ordered by their queue numbers. It has the next job of each line from which a
// job was returned.
type followers []*list.Element

func (b followers) Len() int           { return len(b) }
func (b followers) Less(i, k int) bool { return jobOf(b[i]).wait.number < jobOf(b[k]).wait.number }
func (b followers) Swap(i, k int)      { b[i], b[k] = b[k], b[i] }
func (b *followers) Push(e any)        { *b = append(*b, e.(*list.Element)) }
func (b *followers) Pop() any {
	last := len(*b) - 1
	e := (*b)[last]
	*b = (*b)[:last]
	return e
}

func (ls *lines) start() cursor { return cursor{line: ls.order.Front()} }

// job returns the next job, or nil.
func (c *cursor) job() *Job {
	var first *Job
	if c.line != nil {
		first = firstOf(c.line)
	}
	if len(c.rest) == 0 || first != nil && first.wait.number < jobOf(c.rest[0]).wait.number {
		return first
	}
	return jobOf(c.rest[0])
}

// after moves the cursor past the job j. The caller then removes j if it was served.
func (c *cursor) after(j *Job, result claimResult) {
	next := j.wait.place.Next()
	if len(c.rest) > 0 && c.rest[0] == j.wait.place {
		heap.Pop(&c.rest)
	} else {
		line := c.line.Next()
		if result == served { // the next job becomes the first of its line
			if next == nil || line != nil && firstOf(line).wait.number < jobOf(next).wait.number {
				c.line = line // the job's line moves to a later place
			}
			return
		}
		c.line = line
	}
	if next != nil && result != atLimit {
		heap.Push(&c.rest, next)
	}
}
