package intake

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// Settings says where a job's members are in its body, as JSON Pointers (RFC
// 6901), and how large a body may be. A pointer leads through objects only: a job
// with anything else there, but null, is refused.
type Settings struct {
	// Read says which bodies of a POST are read as jobs: any, which is every body
	// that begins with {, whatever its Content-Type; or json, which is those with a
	// JSON type or none. The rest is passed on unread, as jobs of low priority
	// without a project.
	Read string `yaml:"read"`
	// Project points to the project's identifier: text or a number.
	Project string `yaml:"project"`
	// Priority points to the priority: "high" or "low".
	Priority string `yaml:"priority"`
	// Queue points to the seconds that the job may wait before it starts.
	Queue string `yaml:"queue"`
	// Evaluate points to the seconds from the job's start to the first byte of its
	// response.
	Evaluate string `yaml:"evaluate"`
	// Stream points to the seconds that the response may take after that.
	Stream string `yaml:"stream"`
	// Session points to the text that names the job in the log.
	Session string `yaml:"session"`
	// MaxBody is the largest body; a larger one is refused with 413.
	MaxBody settings.Size `yaml:"max_body"`
	// Budget bounds all bodies that are kept for retries, together. A job whose body
	// does not fit is sent once.
	Budget settings.Size `yaml:"budget"`
}

// Default is the settings of an empty file.
func Default() Settings {
	return Settings{
		Read:     ReadAny,
		Project:  "/project_id",
		Priority: "/priority",
		Queue:    "/timeouts/queue_seconds",
		Evaluate: "/timeouts/evaluate_seconds",
		Stream:   "/timeouts/stream_seconds",
		Session:  "/session_id",
		MaxBody:  64 << 20,
		Budget:   1 << 30,
	}
}

// Which bodies are read as jobs.
const (
	ReadAny  = "any"
	ReadJSON = "json"
)

// Check reports what cannot be used, and what is unwise.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("read", s.Read, []string{ReadAny, ReadJSON})
	s.tree(f)
	f.AtLeast("max_body", int64(s.MaxBody), 1)
	f.AtLeast("budget", int64(s.Budget), 0)
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
	evaluate
	stream
	session
	members // their number, with none
)

// String is the member's key in the settings.
func (m member) String() string {
	return [members]string{"", "project", "priority", "queue", "evaluate", "stream", "session"}[m]
}

// Bounds of a JSON Pointer in the settings: its bytes, and the names in it. The
// second keeps all nodes of a tree within the bits of one word.
const (
	maxPointer = 256
	maxNames   = 64 / int(members-1)
)

// node is one name on the way to wanted members. Either it is wanted itself, or
// it has children.
type node struct {
	name     string
	pointer  string
	want     member
	leaves   int    // wanted members at or below
	bit      uint64 // this node among all of the tree
	children []*node
}

// tree joins the pointers into the tree that a walk follows along with a body.
// What is wrong with a pointer goes to f.
func (s Settings) tree(f *settings.Faults) *node {
	root, nodes := &node{}, 0
	for m, pointer := range [members]string{
		project: s.Project, priority: s.Priority, queue: s.Queue, evaluate: s.Evaluate, stream: s.Stream, session: s.Session,
	} {
		if member(m) == none {
			continue
		}
		key := member(m).String()
		if !strings.HasPrefix(pointer, "/") {
			f.Pointer(key, pointer)
			continue
		}
		wrong := checkPointer(pointer)
		if wrong == "" {
			wrong = root.add(member(m), jsontext.Pointer(pointer), &nodes)
		}
		if wrong != "" {
			f.Add(key, "%q %s", pointer, wrong)
		}
	}
	return root
}

// checkPointer returns what is wrong with a pointer by itself, or "".
func checkPointer(p string) (wrong string) {
	switch {
	case len(p) > maxPointer:
		return fmt.Sprintf("is longer than %d bytes", maxPointer)
	case strings.Count(p, "/") > maxNames:
		return fmt.Sprintf("has more than %d names", maxNames)
	case !jsontext.Pointer(p).IsValid():
		return "must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name"
	}
	return ""
}

// add puts m below the root n. It returns how the pointer collides with an
// earlier one, or "".
func (n *node) add(m member, p jsontext.Pointer, nodes *int) (wrong string) {
	for name := range p.Tokens() {
		if n.want != none {
			return fmt.Sprintf("leads through %q, which is the %v", n.pointer, n.want)
		}
		n.leaves++
		c := n.child([]byte(name))
		if c == nil {
			c = &node{name: name, pointer: string(jsontext.Pointer(n.pointer).AppendToken(name)), bit: 1 << *nodes}
			n.children = append(n.children, c)
			*nodes++
		}
		n = c
	}
	switch {
	case n.want != none:
		return fmt.Sprintf("is already the %v", n.want)
	case len(n.children) > 0:
		return "has other members within it"
	}
	n.want, n.leaves = m, 1
	return ""
}

func (n *node) child(name []byte) *node {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}
