package intake

import "fmt"

// Fields says where a job's members are, as JSON Pointers (RFC 6901). They
// lead through objects only: a job with anything else but null there is refused. An empty
// pointer stands for that field's default.
type Fields struct {
	Project, Priority, Queue, Evaluate, Stream, Session string
}

// DefaultFields returns where the members are unless configured otherwise.
func DefaultFields() Fields {
	return Fields{
		Project:  "/project_id",
		Priority: "/priority",
		Queue:    "/timeouts/queue_seconds",
		Evaluate: "/timeouts/evaluate_seconds",
		Stream:   "/timeouts/stream_seconds",
		Session:  "/session_id",
	}
}

// PointerError is a pointer in Fields that cannot be used.
type PointerError struct {
	Field   string // "project", "priority", "queue", "evaluate", "stream" or "session"
	Pointer string
	Reason  string
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("job: JSON Pointer %q of %s: %s", e.Pointer, e.Field, e.Reason)
}

// member is one of the things a Reader looks for.
type member uint8

const (
	none member = iota
	project
	priority
	queue
	evaluate
	stream
	session
	members // their number, with none
)

var memberNames = [members]string{"", "project", "priority", "queue", "evaluate", "stream", "session"}

// pointers returns the pointer of every member, defaults filled in.
func (f Fields) pointers() [members]string {
	set := [members]string{project: f.Project, priority: f.Priority, queue: f.Queue, evaluate: f.Evaluate, stream: f.Stream, session: f.Session}
	d := DefaultFields()
	for m, p := range [members]string{project: d.Project, priority: d.Priority, queue: d.Queue, evaluate: d.Evaluate, stream: d.Stream, session: d.Session} {
		if set[m] == "" {
			set[m] = p
		}
	}
	return set
}
