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

// BlockTokens is the number of tokens in a block of a prompt.
const BlockTokens = 512

// maxTokens bounds the length of a prompt.
const maxTokens = 1 << 24

// mooncakeLine is a request in Mooncake's traces (FAST'25).
type mooncakeLine struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int64   `json:"input_length"`
	Output    int64   `json:"output_length"`
	Blocks    []int64 `json:"hash_ids"`
}

// Prompts reads one of Mooncake's traces, plain or compressed with gzip. Unknown fields, values out of range and
// requests out of order are errors. The submitter of a request is its chat: the chat in which the last known block
// of the prompt appeared first. The first block does not count, because all chats can share it.
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
	var chats []int64 // the chat of each block
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
			err = fmt.Errorf("timestamp %v is not between the previous request's, %v, and %v", m.Timestamp, before, 1000*MaxSeconds)
		case min(m.Input, m.Output) < 0 || max(m.Input, m.Output) > maxTokens:
			err = fmt.Errorf("input_length or output_length is not between 0 and %d", maxTokens)
		case int64(len(m.Blocks)) > most:
			err = fmt.Errorf("hash_ids has %d blocks: a prompt of this input_length has at most %d", len(m.Blocks), most)
		}
		for depth, b := range m.Blocks {
			switch known := int64(len(chats)); {
			case b == known:
				chats = append(chats, chat)
			case b < 0 || b > known:
				err = cmp.Or(err, fmt.Errorf("hash_ids: the next new block must be %d, not %d", known, b))
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
