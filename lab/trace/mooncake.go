package trace

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// BlockTokens is how many tokens of a prompt are a block.
const BlockTokens = 512

// maxTokens bounds a prompt.
const maxTokens = 1 << 24

// mooncakeLine is a request of the traces that Mooncake has published (FAST'25).
type mooncakeLine struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int64   `json:"input_length"`
	Output    int64   `json:"output_length"`
	Blocks    []int64 `json:"hash_ids"`
}

// Prompts reads a trace of Mooncake's, which may be compressed. It is strict: an unknown field, a value that makes
// no sense, or a request earlier than the one before it is an error. The submitter of a request is its chat: that in
// which its deepest known block came first. The first block, which all may share, is no sign of that.
func Prompts(path string) (jobs []Job, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var chats []int64 // of the blocks
	before := 0.0
	for lines := jsontext.NewDecoder(in); ; {
		var m mooncakeLine
		err := json.UnmarshalDecode(lines, &m, json.RejectUnknownMembers(true))
		if errors.Is(err, io.EOF) && len(jobs) > 0 {
			return jobs, nil
		}
		chat := int64(len(jobs) + 1)
		switch most := (m.Input + BlockTokens - 1) / BlockTokens; {
		case err != nil:
		case !(m.Timestamp >= before && m.Timestamp <= 1000*MaxSeconds):
			err = fmt.Errorf("timestamp %v is not between that of the line before, %v, and %v", m.Timestamp, before, 1000*MaxSeconds)
		case min(m.Input, m.Output) < 0 || max(m.Input, m.Output) > maxTokens:
			err = fmt.Errorf("a length is not between 0 and %d", maxTokens)
		case int64(len(m.Blocks)) > most:
			err = fmt.Errorf("hash_ids: %d blocks are more than %d", len(m.Blocks), most)
		}
		for depth, b := range m.Blocks {
			switch known := int64(len(chats)); {
			case b == known:
				chats = append(chats, chat)
			case b < 0 || b > known:
				err = cmp.Or(err, fmt.Errorf("hash_ids: the first new block has the number %d, not %d", b, known))
			case depth > 0:
				chat = chats[b]
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: request %d: %w", path, len(jobs)+1, err)
		}
		before = m.Timestamp
		jobs = append(jobs, Job{Offset: m.Timestamp / 1000, Read: m.Input, Write: m.Output, Blocks: m.Blocks, Submitter: chat})
	}
}
