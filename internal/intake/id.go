package intake

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// maxID bounds an identifier that a submitter gives, in bytes.
const maxID = 128

// ID returns the identifier of a job: the X-Request-Id of its request, or the trace-id of its
// traceparent (W3C Trace Context). If there is none that can be logged and passed on, which is
// printable ASCII without spaces, 128 bytes at most, it is a new one.
func ID(requestID, traceparent string) string {
	if requestID != "" && len(requestID) <= maxID && !strings.ContainsFunc(requestID, unprintable) {
		return requestID
	}
	if traceparent != "" {
		if id := traceID(traceparent); id != "" {
			return id
		}
	}
	return rand.Text()
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// traceID is the second part of version-traceid-parent-flags: 32 hexadecimal
// digits in lower case, not all of them 0.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	id := parts[1]
	if _, err := hex.DecodeString(id); err != nil || id != strings.ToLower(id) || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}
