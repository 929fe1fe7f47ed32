package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"example.org/pilotfish/internal/record"
)

// bodiesName is the file in the folder log.bodies, and maxBodies bounds the bodies in memory, in bytes.
const (
	bodiesName = "bodies.jsonl"
	maxBodies  = 16 << 20
)

// Bodies records the bodies of jobs in a file, which only its owner can read, for a later
// replay. No job waits for it: bodies that do not fit into its buffer are dropped, and a line of the file
// says how many.
type Bodies struct{ lines *writer }

// NewBodies returns a recorder, or nil if the settings have no folder. failed is called once, if recording stops because
// of an error or because the file has reached its maximum size.
func NewBodies(set Settings, failed func(error)) *Bodies {
	if set.Bodies == "" {
		return nil
	}
	file := &bodiesFile{path: filepath.Join(set.Bodies, bodiesName), limit: int64(set.BodiesSize), failed: failed}
	return &Bodies{&writer{to: file, limit: maxBodies, note: func(lost int) []byte { return fmt.Appendf(nil, `{"lost":%d}`+"\n", lost) }}}
}

// Body is a line of the file: what is needed to send a job again. Other headers are left out, because they can contain secrets.
type Body struct {
	ID       string    `json:"id"`
	Arrived  time.Time `json:"arrived"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Type     string    `json:"type,omitempty"`     // Content-Type
	Encoding string    `json:"encoding,omitempty"` // Content-Encoding
	Body     []byte    `json:"body"`               // as base64
}

// Record records a job's body.
func (b *Bodies) Record(r *record.Job, h http.Header, body []byte) {
	line, err := json.Marshal(Body{r.ID, r.Arrived, r.Method, r.Path, h.Get("Content-Type"), h.Get("Content-Encoding"), body})
	if err == nil { // always: encoding these fields cannot fail
		_, _ = b.lines.Write(append(line, '\n')) // it never fails
	}
}

// Sync waits a short time for bodies to be written.
func (b *Bodies) Sync() error {
	if b == nil {
		return nil
	}
	return b.lines.Sync()
}

// bodiesFile is a file with a maximum size. It is opened at the first write. After an error, and when it
// is full, it discards everything.
type bodiesFile struct {
	path   string
	limit  int64
	failed func(error)

	file *os.File
	size int64
	ends bool
}

func (f *bodiesFile) Write(lines []byte) (int, error) {
	if f.ends {
		return len(lines), nil
	}
	err, fit := f.open(), lines
	if room := f.limit - f.size; int64(len(lines)) > room {
		fit = lines[:1+bytes.LastIndexByte(lines[:max(0, room)], '\n')]
	}
	if err == nil {
		var n int
		n, err = f.file.Write(fit)
		f.size += int64(n)
	}
	if err == nil && len(fit) < len(lines) {
		err = fmt.Errorf("%s has reached log.bodies_size, %d bytes", f.path, f.limit)
	}
	if err != nil {
		f.ends = true
		if f.file != nil {
			_ = f.file.Close()
		}
		f.failed(err)
	}
	return len(lines), nil
}

func (f *bodiesFile) open() (err error) {
	if f.file != nil {
		return nil
	}
	if err = os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	if f.file, err = os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		f.file = nil
		return err
	}
	if err = f.file.Chmod(0o600); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err == nil {
		f.size = info.Size()
	}
	return err
}
