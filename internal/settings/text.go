package settings

import (
	"strings"
	"time"
)

// MaxText bounds a text from outside that is stored, logged or displayed, in bytes.
const MaxText = 512

// Cut truncates a text to at most limit bytes, at a character boundary. A truncated text ends with "...".
func Cut(text string, limit int) string {
	const more = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// Minute formats a time for a message, which can be read days later and in another time zone.
func Minute(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }
