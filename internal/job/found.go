package job

import (
	"bytes"
	"strconv"
)

// tailBytes is the number of bytes kept from the end of a response, for jobs whose project has blocks.
const tailBytes = 1 << 10

// Wrote records a piece of the response body, of which n bytes were forwarded. It keeps the end of the body, where language
// model servers report the cached part of the prompt as usage.prompt_tokens_details.cached_tokens.
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

// found returns the share of a prompt's tokens that the server had cached, from the end of a JSON or event-stream
// response. Quotation marks within JSON strings are escaped, so a generated text cannot imitate these members.
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

// number returns the value of the first member with that quoted name.
func number(text []byte, name string) (n float64, ok bool) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	rest = bytes.TrimLeft(rest, ": \t\r\n")
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseFloat(string(rest[:max(end, 0)]), 64)
	return n, err == nil
}
