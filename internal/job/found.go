package job

import (
	"bytes"
	"strconv"
)

// tailBytes is how much is kept of the end of an answer to a job with a text.
const tailBytes = 1 << 10

// Wrote takes in a piece of the response's body of which n bytes were passed on. Servers of language models report at
// its end how much of the prompt was cached, as usage.prompt_tokens_details.cached_tokens.
func (b *Book) Wrote(piece []byte, n int) {
	b.Record.Bytes += int64(n)
	if data := b.Record.Facts.Data; data == nil || data.Set {
		return
	}
	if b.tail == nil {
		b.tail = make([]byte, 0, tailBytes)
	}
	if over := len(b.tail) + len(piece) - tailBytes; over > 0 {
		b.tail = b.tail[:copy(b.tail, b.tail[min(over, len(b.tail)):])]
		piece = piece[max(0, len(piece)-tailBytes):]
	}
	b.tail = append(b.tail, piece...)
}

// found is the share of a prompt's tokens that the server had, by the end of its answer: of
// JSON, or of events that have JSON. A quotation mark within a text is escaped, so that no text looks like this.
func found(tail []byte) (share float64, ok bool) {
	at := bytes.LastIndex(tail, []byte(`"prompt_tokens_details"`))
	if at < 0 {
		return 0, false
	}
	cached, ok := number(tail[at:], `"cached_tokens"`)
	i := bytes.LastIndex(tail, []byte(`"prompt_tokens"`))
	if !ok || i < 0 {
		return 0, false
	}
	all, ok := number(tail[i:], `"prompt_tokens"`)
	return cached / all, ok && all > 0 && cached <= all
}

// number is the value of the first member with that quoted name.
func number(text []byte, name string) (n float64, ok bool) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	rest = bytes.TrimLeft(rest, ": \t\r\n")
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseFloat(string(rest[:max(end, 0)]), 64)
	return n, err == nil
}
