package intake

import (
	"fmt"
	"net/textproto"
	"slices"

	"example.org/pilotfish/internal/settings"
)

// Settings says where a job's members are in a request, and how large a body may
// be. A place is a JSON Pointer into the body such as /project_id, or a section
// with one of the keys pointer, header and path.
type Settings struct {
	// Project is the place of the project's identifier: text or a number. Of a list of
	// places, the project is what is there, joined by slashes. An array names several
	// projects: the job needs the data of each.
	Project Places `yaml:"project"`
	// Priority is the place of the priority: "high" or "low".
	Priority Place `yaml:"priority"`
	// QueueTimeout is the place of the seconds that the job may wait before it starts.
	QueueTimeout Place `yaml:"queue_timeout"`
	// FirstByteTimeout is the place of the seconds from the job's start to the first byte of
	// its response.
	FirstByteTimeout Place `yaml:"first_byte_timeout"`
	// StreamTimeout is the place of the seconds that the response may take after that.
	StreamTimeout Place `yaml:"stream_timeout"`
	// Session is the place of the text that names the job in the log. One longer than 128 bytes is left out.
	Session Place `yaml:"session"`
	// Bytes is the place of the size of the project's data, in bytes. Where a job tells it, it is
	// taken for the size that prices a fetch; elsewhere the cache listings tell it.
	Bytes Place `yaml:"bytes"`
	// Prefetch is the place of true in a request that only loads its project's data into a cache. As a path, such as
	// /v1/prefetch, it is a pattern that may lack the *: each request whose path begins so is a prefetch.
	Prefetch Place `yaml:"prefetch"`
	// ExpectedHeader names the header in which each job tells its upstream how many
	// seconds it will probably take, for upstreams that let short jobs go first. Empty sends none.
	ExpectedHeader string `yaml:"expected_header"`
	// MaxBody is the largest body; a larger one is refused with 413.
	MaxBody settings.Size `yaml:"max_body"`
	// Budget bounds all bodies that are kept for retries, together. A job whose body
	// does not fit is sent once. A quarter of the budget, at most 128 MiB, is for the
	// first 64 KiB of each such body; where that is full, the job is refused with 503. A
	// memory limit that has no room for the budget makes it smaller.
	Budget settings.Size `yaml:"budget"`
}

// Default is the settings of an empty file.
func Default() Settings {
	return Settings{
		Project:          Places{{Pointer: "/project_id"}},
		Priority:         Place{Pointer: "/priority"},
		QueueTimeout:     Place{Pointer: "/timeouts/queue_seconds"},
		FirstByteTimeout: Place{Pointer: "/timeouts/evaluate_seconds"},
		StreamTimeout:    Place{Pointer: "/timeouts/stream_seconds"},
		Session:          Place{Pointer: "/session_id"},
		Bytes:            Place{Pointer: nowhere},
		Prefetch:         Place{Pointer: nowhere},
		ExpectedHeader:   "Job-Expected",

		MaxBody: 64 << 20,
		Budget:  1 << 30,
	}
}

// reserved are headers that frame a request, steer its connection or are set by pilotfish.
var reserved = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Authorization", "Traceparent", "Tracestate", "X-Request-Id",
}

const (
	// leastBudget is room for the first bytes of a few bodies.
	leastBudget settings.Size = 1 << 20
	// largestSize is so far from the largest number that sums of sizes are numbers, too.
	largestSize settings.Size = 1 << 40
)

// Check reports what cannot be used, and what is unwise.
func (s Settings) Check(f *settings.Faults) {
	s.members(f)
	switch name := textproto.CanonicalMIMEHeaderKey(s.ExpectedHeader); {
	case name != "" && !isToken(name):
		f.Add("expected_header", "%q is not the name of a header", name)
	case slices.Contains(reserved, name):
		f.Add("expected_header", "%q has a meaning in HTTP or for pilotfish already", name)
	}
	f.AtLeast("max_body", int64(s.MaxBody), 1)
	if s.MaxBody > largestSize {
		f.Add("max_body", "%v is more than %v", s.MaxBody, largestSize)
	}
	switch {
	case s.Budget < leastBudget:
		f.Add("budget", "%v must be at least %v", s.Budget, leastBudget)
	case s.Budget > largestSize:
		f.Add("budget", "%v is more than %v", s.Budget, largestSize)
	}
	if s.Budget < s.MaxBody {
		f.Warn("budget", "%v is less than job.max_body, %v: a job with a larger body than %v is never retried", s.Budget, s.MaxBody, s.Budget)
	}
}

// member is one of the things a Reader looks for.
type member uint8

const (
	none member = iota
	project
	priority
	queue
	firstByte
	stream
	session
	dataBytes
	prefetch
	members // their number, with none
)

// String is the member's key in the settings.
func (m member) String() string {
	return [members]string{"", "project", "priority", "queue_timeout", "first_byte_timeout", "stream_timeout", "session", "bytes", "prefetch"}[m]
}

// Bounds of JSON Pointers in the settings: the bytes and the names of one, and the names of all of them.
const (
	maxPointer = 256
	maxNames   = 10
	maxNodes   = maxNames * (int(members-priority) + maxPlaces)
)

// members are the wanted members: the tree of those in the body, and the others.
// What is wrong with their places goes to f.
func (s Settings) members(f *settings.Faults) (root *node, head []headMember) {
	root, nodes := &node{}, 0
	add := func(key string, p Place, m member, part int) {
		p.check(f.In(key), m)
		if !p.inBody() {
			head = append(head, headMember{p, m, part})
			return
		}
		if !p.alone() {
			key += ".pointer"
		}
		root.place(f, key, p.Pointer, m, part, &nodes)
	}
	switch n := len(s.Project); {
	case n == 1:
		add(project.String(), s.Project[0], project, 0)
	case n == 0:
		add(project.String(), Place{}, project, 0)
	case n > maxPlaces:
		f.Add(project.String(), "%d places are more than %d", n, maxPlaces)
	default:
		for i, p := range s.Project {
			add(fmt.Sprintf("%v[%d]", project, i), p, project, i)
		}
	}
	for m, p := range [members]Place{priority: s.Priority, queue: s.QueueTimeout, firstByte: s.FirstByteTimeout, stream: s.StreamTimeout, session: s.Session, dataBytes: s.Bytes, prefetch: s.Prefetch} {
		if m := member(m); m >= priority {
			add(m.String(), p, m, 0)
		}
	}
	return root, head
}
