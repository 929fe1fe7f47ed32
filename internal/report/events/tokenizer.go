package events

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/internal/httpclient"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/recent"
)

const (
	// tokenizePath is where vLLM returns the tokens of a prompt.
	tokenizePath = "/tokenize"
	// The maximum time for that is minTimeout, and timePerByte for each byte of the job's body.
	minTimeout, timePerByte = 200 * time.Millisecond, 3 * time.Microsecond
	// quiet is how long no tokens are requested after a failure.
	quiet = 5 * time.Second
	// maxTokens bounds a response with the tokens of a prompt, in bytes.
	maxTokens = 16 << 20
	// maxParts bounds the parts of a prompt: 131,072 tokens. Further tokens are ignored.
	maxParts = 1024
	// tokenBytes is the average size of a token's text.
	tokenBytes = 4
	// maxSeen bounds the blocks of jobs that are remembered: about 10 MB.
	maxSeen = 1 << 17
	// idleConns bounds the idle connections to one upstream.
	idleConns = 16
)

// tokenizer requests the tokens of prompts.
type tokenizer struct {
	failed  func(address string, err error)
	client  *http.Client
	timeout time.Duration

	mu      sync.Mutex
	address string             // the upstream whose event was read last
	size    int                // of its blocks, in tokens; 0 before the first event
	resume  time.Time          // after a failure
	reason  string             // of the last failure; "" after a success
	seen    *recent.Map[chain] // the prompt before a block, by the digest of the block alone; the zero chain if there were several
}

func newTokenizer(c *Config) *tokenizer {
	return &tokenizer{
		failed: c.Failed, timeout: minTimeout, seen: recent.NewMap[chain](maxSeen, nil),
		client: httpclient.New(&http.Transport{DialContext: c.Dial, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: time.Minute}),
	}
}

// use makes t request tokens from an upstream from now on.
func (t *tokenizer) use(address string, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.address, t.size = address, size
}

// Parts returns the parts of the prompt in a job's body, with keys of its tokens. It returns nil if no upstream returns the
// tokens, or if the prompt is shorter than a part.
func (t *tokenizer) Parts(body []byte) *intake.Parts {
	now := time.Now()
	t.mu.Lock()
	address, size := t.address, t.size
	if now.Before(t.resume) {
		size = 0
	}
	t.mu.Unlock()
	if size == 0 {
		return nil
	}
	tokens, err := t.request(address, body)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.reason = ""
		return t.split(tokens, size)
	}
	t.resume = now.Add(quiet)
	if text := err.Error(); text != t.reason {
		t.reason = text
		t.failed(address, fmt.Errorf("tokens of a prompt: %w", err))
	}
	return nil
}

// request posts a job's body to an upstream, and returns the prompt's tokens.
func (t *tokenizer) request(address string, body []byte) (tokens []uint32, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout+time.Duration(len(body))*timePerByte)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+tokenizePath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "pilotfish")
	resp, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity: // a fault of the job
		return nil, nil
	default:
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	var into struct {
		Tokens []uint32 `json:"tokens"`
	}
	err = json.UnmarshalRead(http.MaxBytesReader(nil, resp.Body, maxTokens), &into)
	return into.Tokens, err
}

// split returns the parts of a prompt, and remembers its blocks.
func (t *tokenizer) split(tokens []uint32, size int) *intake.Parts {
	var parts []intake.Part
	for at, start := (chain{}), 0; len(tokens) >= size && len(parts) < maxParts; tokens = tokens[size:] {
		before, block := at, tokens[:size]
		alone := digest(0, block)
		if other, known := t.seen.Get(alone); known && other != before {
			before = chain{}
		}
		t.seen.Put(alone, before)
		if at = at.extend(block); at.part {
			parts = append(parts, intake.Part{Key: at.key, Bytes: tokenBytes * float64(at.tokens-start)})
			start = at.tokens
		}
	}
	if parts == nil {
		return nil
	}
	return &intake.Parts{Parts: parts}
}

// before returns the prompt before a block, if a job has shown it.
func (t *tokenizer) before(block []uint32) (c chain, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, _ = t.seen.Get(digest(0, block))
	return c, c.tokens > 0
}
