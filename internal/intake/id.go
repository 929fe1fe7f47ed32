package intake

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// maxID is the maximum length of a submitter's request ID, in bytes.
const maxID = 128

// ID returns the identifier of a job: the X-Request-Id of its request, otherwise the trace-id of its
// traceparent (W3C Trace Context), otherwise a new random ID. An X-Request-Id is used only if it is
// safe to log and to forward: printable ASCII without spaces, at most 128 bytes.
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

// traceID returns the trace-id of version-traceid-parent-flags, or "" if it is invalid.
// A valid trace-id is 32 lower-case hexadecimal digits, not all 0.
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
