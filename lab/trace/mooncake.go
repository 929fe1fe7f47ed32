package trace

import (
	"bytes"

	"github.com/go-json-experiment/json"
)

// BlockTokens is how many tokens of a prompt are a block.
const BlockTokens = 512

// maxTokens bounds a prompt, so that the names of its blocks fit into a line.
const maxTokens = 1 << 24

// blocksOf is how many blocks so many tokens are.
func blocksOf(tokens int64) int64 { return (tokens + BlockTokens - 1) / BlockTokens }

// mooncakeLine is a request of the traces that Mooncake has published (FAST'25).
type mooncakeLine struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int64   `json:"input_length"`
	Output    int64   `json:"output_length"`
	Blocks    []int64 `json:"hash_ids"`
}

func isMooncake(line []byte) bool { return bytes.Contains(line, []byte(`"hash_ids"`)) }

func decodeMooncake(line []byte, job *Job) error {
	var m mooncakeLine
	if err := json.Unmarshal(line, &m, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	job.Offset, job.Read, job.Write, job.Blocks = m.Timestamp/1000, m.Input, m.Output, m.Blocks
	return nil
}
