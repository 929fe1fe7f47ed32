package logging

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
)

// keptEvents bounds the number of stored events, and namedUpstreams the number of addresses in an event.
const (
	keptEvents     = 100
	namedUpstreams = 5
)

// Event is a log line that is not about a job: an upstream joined, its breaker opened, the configuration was
// reloaded.
type Event struct {
	// At is when it was last logged, and Times how often in a row.
	At    time.Time `json:"at"`
	Times int       `json:"times"`
	// Level is info, warn or error.
	Level string `json:"level"`
	// Text is the line's message, and Cause its reason, if it has one.
	Text  string `json:"text"`
	Cause string `json:"cause,omitempty"`
	// Upstreams are the addresses of the upstreams concerned, and MoreUpstreams the number of further ones.
	Upstreams     []string `json:"upstreams,omitempty"`
	MoreUpstreams int      `json:"more_upstreams,omitempty"`
}

// Events stores the last events, independent of the log's level.
type Events struct {
	mu   sync.Mutex
	last []Event // the latest last
	n    int     // number of events since the start
}

// Last returns the last events, the latest first, and the number of events since the start.
func (e *Events) Last() (events []Event, all int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	events = append([]Event{}, e.last...)
	slices.Reverse(events)
	return events, e.n
}

// note stores an event. A repetition of the last event increments its count.
func (e *Events) note(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	if n := len(e.last); n > 0 && e.last[n-1].Text == event.Text && slices.Equal(e.last[n-1].Upstreams, event.Upstreams) {
		event.Times += e.last[n-1].Times
		e.last = e.last[:n-1]
	}
	e.last = append(e.last, event)
	e.last = slices.Delete(e.last, 0, max(0, len(e.last)-keptEvents))
}

// eventCore is a zapcore.Core that keeps lines as events. The type bounded, which wraps it, checks
// the level.
type eventCore struct {
	zapcore.Core // for the methods that are not below
	events       *Events
	fields       []zapcore.Field
}

func (n eventCore) With(fields []zapcore.Field) zapcore.Core {
	n.fields = slices.Concat(n.fields, fields)
	return n
}

func (n eventCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	object := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(n.fields, fields) {
		f.AddTo(object)
	}
	text := func(key string) string { s, _ := object.Fields[key].(string); return s }
	event := Event{
		At: e.Time, Times: 1, Level: e.Level.String(), Text: e.Message,
		Cause: cmp.Or(text("cause"), text("error"), text("warning"), text("key")),
	}
	if address := text("upstream"); address != "" {
		event.Upstreams = []string{address}
	}
	list, _ := object.Fields["upstreams"].([]any)
	for _, address := range list[:min(len(list), namedUpstreams)] {
		event.Upstreams = append(event.Upstreams, address.(string)) // zap.Strings
	}
	all, cut := object.Fields["upstreams_total"].(int64)
	if !cut {
		all = int64(len(list))
	}
	event.MoreUpstreams = max(0, int(all)-namedUpstreams)
	n.events.note(event)
	return nil
}
