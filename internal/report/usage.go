package report

import (
	"bytes"
	"strconv"
)

// CachedShare returns the share of a prompt's tokens that a language model server had cached, as the end of its JSON or
// event-stream response reports it: usage.prompt_tokens_details.cached_tokens. Quotation marks within JSON strings are escaped, so a generated text cannot imitate these members.
func CachedShare(tail []byte) (share float64, ok bool) {
	at := bytes.LastIndex(tail, []byte(`"prompt_tokens_details"`))
	if at < 0 {
		return 0, false
	}
	cached, ok := tokens(tail[at:], `"cached_tokens"`)
	i := bytes.LastIndex(tail, []byte(`"prompt_tokens"`))
	if !ok || i < 0 {
		return 0, false
	}
	all, ok := tokens(tail[i:], `"prompt_tokens"`)
	return cached / all, ok && all > 0 && cached <= all
}

// tokens returns the value of the first member with that quoted name.
func tokens(text []byte, name string) (n float64, ok bool) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	rest = bytes.TrimLeft(rest, ": \t\r\n")
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseFloat(string(rest[:max(end, 0)]), 64)
	return n, err == nil
}
