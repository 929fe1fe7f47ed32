//go:build !race

package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Under the race detector a sync.Pool drops entries at random, hence the build constraint.
func TestReadAllocatesItsTextsAlone(t *testing.T) {
	r := newReader(t)
	const members = `"session_id":"5531f48d-74f0-4b52-8203-470d5ed8aa90","project_id":12345,"priority":"high","timeouts":{"queue_seconds":15}`
	other := `"operators":["` + strings.Repeat("x", 64<<10) + `"]`
	for name, body := range map[string][]byte{
		"first":   []byte("{" + members + "," + other + "}"),
		"last":    []byte("{" + other + "," + members + "}"),
		"largest": []byte(`{"project_id":18446744073709551615,"session_id":1234567890}`),
		"string":  []byte(`{"project_id":"5531f48d-74f0-4b52-8203-470d5ed8aa90"}`),
		"escapes": []byte(`{"project\u005fid":"a\u0062c","priority":"\u0068igh"}`),
	} {
		allocs := testing.AllocsPerRun(200, func() {
			if _, _, err := r.read(Head{}, body, true); err != nil {
				t.Fatal(err)
			}
		})
		assert.LessOrEqual(t, allocs, 2.0, "%s: the project and the session", name)
	}
}
