package ruleserver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/ruleserver/rules"
)

func TestFormatOf(t *testing.T) {
	for accept, want := range map[string]rules.Format{
		"":                                     rules.NDJSON,
		"*/*":                                  rules.NDJSON,
		"text/csv":                             rules.CSV,
		"Text/CSV; header=present":             rules.CSV,
		"text/csv, */*;q=0.1":                  rules.CSV,
		"text/csv;q=0":                         rules.NDJSON,
		"text/csv;q=high":                      rules.NDJSON,
		"text/csv;q=0.5, application/x-ndjson": rules.NDJSON,
		"application/x-ndjson;q=0.2,text/csv":  rules.CSV,
		"text/csv, application/x-ndjson":       rules.NDJSON,
		";;;,text/csv":                         rules.CSV,
	} {
		assert.Equal(t, want, formatOf(accept), accept)
	}
}
