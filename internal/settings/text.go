package settings

import "strings"

// MaxText bounds a text of somebody else that is stored, logged or shown, in bytes.
const MaxText = 512

// Cut is a text of at most limit bytes. One that was longer ends with "...", on a whole character.
func Cut(text string, limit int) string {
	const more = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
