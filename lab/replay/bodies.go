package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/internal/logging"
)

// maxBody bounds a line of a file of recorded bodies, in bytes.
const maxBody = 1 << 30

// Bodies are the requests that sidecars recorded (log.bodies). They are read from their files only when they are sent.
type Bodies struct {
	files []*os.File
	at    map[string][]Recording // by job identifier, in the order of the files
}

// Recording is the place of a recorded request.
type Recording struct {
	file   *os.File
	offset int64
	length int
}

// OpenBodies reads the positions of the bodies in files. The caller must close the result.
func OpenBodies(paths ...string) (b *Bodies, err error) {
	b = &Bodies{at: map[string][]Recording{}}
	for _, path := range paths {
		if err := b.open(path); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), b.Close())
		}
	}
	return b, nil
}

func (b *Bodies) open(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	b.files = append(b.files, file)
	lines, offset := bufio.NewReaderSize(file, 64<<10), int64(0)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) || len(line) > maxBody {
			return fmt.Errorf("line %d: %w", n, errors.Join(err, errors.New("it is too long")))
		}
		var body struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(line, &body) == nil && body.ID != "" { // skip a line that is incomplete because the process was killed
			b.at[body.ID] = append(b.at[body.ID], Recording{file, offset, len(line)})
		}
		if offset += int64(len(line)); err != nil {
			return nil
		}
	}
}

// request returns the recorded request, for a target.
func (p Recording) request(ctx context.Context, target string) (*http.Request, error) {
	line := make([]byte, p.length)
	if _, err := p.file.ReadAt(line, p.offset); err != nil {
		return nil, err
	}
	var body logging.Body
	if err := json.Unmarshal(line, &body); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, body.Method, target+body.Path, bytes.NewReader(body.Body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // as in request
	for name, value := range map[string]string{"X-Request-Id": body.ID, "Content-Type": body.Type, "Content-Encoding": body.Encoding} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// Close closes the files.
func (b *Bodies) Close() (err error) {
	for _, file := range b.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// Recordings returns the recorded requests of jobs. ids are the jobs' identifiers, which need not be unique. kept are
// the indices of the jobs that have a recording.
func (b *Bodies) Recordings(ids []string) (all []Recording, kept []int) {
	used := map[string]int{}
	for i, id := range ids {
		if here := b.at[id]; used[id] < len(here) {
			all, kept = append(all, here[used[id]]), append(kept, i)
			used[id]++
		}
	}
	return all, kept
}
