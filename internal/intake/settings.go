package intake

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// Settings locates a job's members in a request and bounds bodies. A place is a JSON
// Pointer into the body such as /project_id, or a section with one of the keys
// pointer, header and path.
type Settings struct {
	// Project is the place of the project's identifier, a string or a number. With a list of
	// places, the identifier is their values joined by slashes. If the value is an array, the
	// job needs the data of several projects.
	Project Places `yaml:"project"`
	// Priority is the place of the priority: "high" or "low".
	Priority Place `yaml:"priority"`
	// QueueTimeout is the place of the queue timeout, in seconds: the maximum time before the job starts.
	QueueTimeout Place `yaml:"queue_timeout"`
	// FirstByteTimeout is the place of the first-byte timeout, in seconds: from the job's
	// start to the first byte of its response.
	FirstByteTimeout Place `yaml:"first_byte_timeout"`
	// StreamTimeout is the place of the stream timeout, in seconds: from the first byte of the response to the last.
	StreamTimeout Place `yaml:"stream_timeout"`
	// Session is the place of the session identifier, which is only logged. A value over 128 bytes is not logged.
	Session Place `yaml:"session"`
	// Bytes is the place of the size of the project's data, in bytes. It determines the estimated cost of
	// a fetch. For jobs without it, the size is taken from the cache listings.
	Bytes Place `yaml:"bytes"`
	// LengthKey is one or more places of values on which the duration of a project's jobs depends, such as the
	// channel or the set of rules. Expected durations are then learned by project and these values. A value can be of
	// any JSON type; its text counts. A place has the keys of the project's, without blocks.
	LengthKey Places `yaml:"length_key"`
	// Prefetch is the place of a boolean: true marks a request that only loads its project's data into a cache. A path
	// pattern without *, such as /v1/prefetch, marks every request whose path has this prefix.
	Prefetch Place `yaml:"prefetch"`
	// ExpectedHeader is the request header with the job's expected duration in seconds, for
	// upstreams that run short jobs first. If empty, no such header is sent.
	ExpectedHeader string `yaml:"expected_header"`
	// WithdrawPath is the path at which upstreams withdraw a waiting job on DELETE, such as /v1/jobs/{id}. Each job then has
	// its ID in the header Job-Id. An idle upstream gets jobs that wait elsewhere, if they are withdrawn there before they
	// start. If empty, waiting jobs stay where they are.
	WithdrawPath string `yaml:"withdraw_path"`
	// MaxBody is the maximum size of a body; a larger body is refused with 413.
	MaxBody settings.Size `yaml:"max_body"`
	// Budget is the maximum total size of the bodies kept for retries. A job whose body does
	// not fit is sent without retries. A quarter of the budget, at most 128 MiB, is reserved
	// for the first 64 KiB of such bodies; when the reserve is full, jobs are refused with
	// 503. A memory limit that is too low for the budget reduces it.
	Budget settings.Size `yaml:"budget"`
}

// Default returns the settings of an empty file.
func Default() Settings {
	return Settings{
		Project:          Places{{Pointer: "/project_id"}},
		Priority:         Place{Pointer: "/priority"},
		QueueTimeout:     Place{Pointer: "/timeouts/queue_seconds"},
		FirstByteTimeout: Place{Pointer: "/timeouts/evaluate_seconds"},
		StreamTimeout:    Place{Pointer: "/timeouts/stream_seconds"},
		Session:          Place{Pointer: "/session_id"},
		Bytes:            Place{Pointer: nowhere},
		LengthKey:        Places{{Pointer: nowhere}},
		Prefetch:         Place{Pointer: nowhere},
		ExpectedHeader:   "Job-Expected",

		MaxBody: 64 << 20,
		Budget:  1 << 30,
	}
}

// reserved lists the headers that frame a request, control its connection or are set by pilotfish.
var reserved = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Authorization", "Traceparent", "Tracestate", "X-Request-Id",
}

const (
	// leastBudget is the minimum budget: enough for the first bytes of a few bodies.
	leastBudget settings.Size = 1 << 20
	// largestSize is low enough that sums of sizes cannot overflow.
	largestSize settings.Size = 1 << 40
)

// Check adds invalid values to f, and warnings about unwise values.
func (s Settings) Check(f *settings.Faults) {
	s.members(f)
	switch name := s.Canonical().ExpectedHeader; {
	case name != "" && !isToken(name):
		f.Add("expected_header", "%q is not a valid header name", name)
	case slices.Contains(reserved, name):
		f.Add("expected_header", "%q is reserved for HTTP or pilotfish", name)
	}
	if path := s.WithdrawPath; path != "" && (!strings.HasPrefix(path, "/") || strings.Count(path, "{id}") != 1) {
		f.Add("withdraw_path", "%q is not a path with one {id}", path)
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

// Canonical returns the settings with the names of headers for upstreams in canonical form.
func (s Settings) Canonical() Settings {
	s.ExpectedHeader = textproto.CanonicalMIMEHeaderKey(s.ExpectedHeader)
	return s
}

// member identifies a member of a job.
type member uint8

const (
	none member = iota
	project
	lengthKey
	priority
	queue
	firstByte
	stream
	session
	dataBytes
	prefetch
	members // the number of members, including none
)

// String returns the member's key in the settings.
func (m member) String() string {
	return [members]string{"", "project", "length_key", "priority", "queue_timeout", "first_byte_timeout", "stream_timeout", "session", "bytes", "prefetch"}[m]
}

// Upper bounds of the JSON Pointers in the settings.
const (
	maxPointer = 256                                              // bytes of a pointer
	maxNames   = 10                                               // names in a pointer
	maxNodes   = maxNames * (int(members-priority) + 2*MaxPlaces) // names in all pointers
)

// members returns the tree of the members in the body and the list of the members
// outside it. Invalid places are added to f.
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
	addPlaces := func(m member, places Places) {
		switch n := len(places); {
		case n == 1:
			add(m.String(), places[0], m, 0)
		case n == 0:
			add(m.String(), Place{}, m, 0)
		case n > MaxPlaces:
			f.Add(m.String(), "%d places are more than %d", n, MaxPlaces)
		default:
			for i, p := range places {
				add(fmt.Sprintf("%v[%d]", m, i), p, m, i)
			}
		}
	}
	addPlaces(project, s.Project)
	for m, p := range [members]Place{priority: s.Priority, queue: s.QueueTimeout, firstByte: s.FirstByteTimeout, stream: s.StreamTimeout, session: s.Session, dataBytes: s.Bytes, prefetch: s.Prefetch} {
		if m := member(m); m >= priority {
			add(m.String(), p, m, 0)
		}
	}
	if len(s.LengthKey) > 0 {
		addPlaces(lengthKey, s.LengthKey) // last: its places conflict with the others', not the other way round
	}
	return root, head
}
