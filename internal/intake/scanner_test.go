package intake

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireAgreement holds the scanner against the decoder: it accepts nothing else, reads the same and
// stops at the same byte; and it accepts all that the decoder reads to its end. It returns whether the scanner accepts the body.
func requireAgreement(t *testing.T, r *Reader, body []byte) bool {
	var scanned, decoded walk
	scanned.start(body, true, r.project)
	decoded.start(body, true, r.project)
	ok := scanned.scan(r.root)
	err := decoded.decode(r.root)
	if !ok {
		levels := bytes.Count(body, []byte("[")) + bytes.Count(body, []byte("{"))
		require.True(t, err != nil || levels > maxOpen || decoded.dec.StackDepth() > 0, "the scanner refuses %q", body)
		return false
	}
	require.NoError(t, err, "the scanner accepts %q", body)
	require.Equal(t, decoded.facts, scanned.facts, "%q", body)
	require.Equal(t, decoded.met, scanned.met, "%q", body)
	require.Equal(t, decoded.left, scanned.left, "%q", body)
	require.Equal(t, decoded.in.InputOffset(), scanned.in.InputOffset(), "%q", body)
	return true
}

func FuzzScanner(f *testing.F) {
	for _, row := range rows(f) {
		f.Add([]byte(row.body), uint8(len(row.body)))
	}
	f.Add(jobOf(1<<10, false), uint8(0))
	r := newReader(f, pointers{})
	f.Fuzz(func(t *testing.T, body []byte, shift uint8) {
		requireAgreement(t, r, append(bytes.Repeat([]byte(" "), int(shift%blockSize)), body...))
	})
}

func TestScannerAgreesWithDecoder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	r := newReader(t, pointers{})
	accepted := map[bool]int{}
	for n := range 20_000 {
		body := []byte(strings.Repeat(space(rng), rng.IntN(blockSize)) + randomObject(rng, 5))
		for range rng.IntN(3) {
			body[rng.IntN(len(body))] = byte(rng.IntN(256))
		}
		if n%8 == 0 {
			body = damage(rng, body)
		}
		accepted[requireAgreement(t, r, body)]++
	}
	assert.Greater(t, accepted[true], 2000)
	assert.Greater(t, accepted[false], 2000)
}

// What begins, ends or is wrong in a string is found wherever it is in a block.
func TestScannerAcrossBlocks(t *testing.T) {
	r := newReader(t, pointers{})
	for text, valid := range map[string]bool{
		`\"`: true, `\\`: true, `\\\"`: true, `\u00fF`: true, `\ud800`: true, "é": true, "\xff": true, "\x7f": true, `{[]}:,`: true, "": true,
		"\n": false, "\x00": false, "\x1f": false, `\x`: false, `\u00g0`: false, `\u00`: false, `\`: false, `\\\`: false, `"`: false,
	} {
		for at := range 2*blockSize + 1 {
			for _, after := range []int{0, 1, blockSize} {
				body := fmt.Sprintf(`{"x":["%s%s%s","y"],"project_id":1}`, strings.Repeat("x", at), text, strings.Repeat("x", after))
				require.Equal(t, valid, requireAgreement(t, r, []byte(body)), "%q", body)
			}
		}
	}
}

func TestScannerGrammar(t *testing.T) {
	r := newReader(t, pointers{})
	for value, valid := range map[string]bool{
		`[1,-2,0,-0,0.5,10.25e+3,1E-9]`: true, `[true,false,null]`: true, `[]`: true, `{}`: true, `[[],{},[[]]]`: true,
		`[ 1 , { "a" : "b" , "c" : [ ] } ]`: true, "\t{\r\n}": true, `[{"a":"b"},{"a":"b"}]`: true, `[["a"],"b"]`: true,
		`[01]`: false, `[-]`: false, `[1.]`: false, `[.5]`: false, `[1e]`: false, `[1e+]`: false, `[+1]`: false, `[--1]`: false, `[1 2]`: false,
		`[tru]`: false, `[truex]`: false, `[nul]`: false, `[fals]`: false, `[fals ]`: false, `[falsx]`: false,
		`[1,]`: false, `[,1]`: false, `[,]`: false, `[1`: false, `[1}`: false, `{"a":1]`: false, `{"a":1,}`: false, `{,}`: false, `[}`: false, `{]`: false,
		`{"a"}`: false, `{"a":}`: false, `{"a","b"}`: false, `{"a":"b":"c"}`: false, `{"a":"b","c"}`: false, `{"a":"b" "c":1}`: false, `["a":"b"]`: false,
		`["a""b"]`: false, `["a" "b"]`: false, `{1:2}`: false, `{true:1}`: false, `{[]:1}`: false, `{{}:1}`: false, `[:]`: false, `[\"a\"]`: false,
		"[\x00]": false, "[\v1]": false, "[\xa0]": false, ``: false, `,`: false, `:1`: false, `}`: false, `]`: false, `"`: false, `"a`: false,
	} {
		for _, body := range []string{`{"x":` + value + `}`, `{"x":` + value + `,"project_id":1}`, `{"project_id":1,"timeouts":{"x":` + value + `,"queue_seconds":1}}`} {
			require.Equal(t, valid, requireAgreement(t, r, []byte(body)), "%q", body)
		}
	}
	for body, valid := range map[string]bool{
		`{}`: true, ` { } `: true, `{}{}`: false, `{}x`: false, `{},`: false, `}`: false, `{`: false, ``: false, `[]`: false, `1`: false, `{"a":1`: false,
		`{"a":1}}`: false, `{"timeouts":{}}`: true, `{"timeouts":{},}`: false, `{"timeouts":{} "a":1}`: false, `{{}}`: false, `{"timeouts":{`: false,
		`{"timeouts":{"a":1,}}`: false, `{"a" "b"}`: false, `{"a":1 "b":2}`: false, `{"a",1}`: false, `{:1}`: false, `{"a"::1}`: false, `{"a":1,,"b":1}`: false,
	} {
		assert.Equal(t, valid, requireAgreement(t, r, []byte(body)), "%q", body)
	}
}

const (
	wantedMembers = `"session_id":"5531f48d-74f0-4b52-8203-470d5ed8aa90","project_id":12345,"priority":"high",` +
		`"timeouts":{"queue_seconds":15,"evaluate_seconds":120,"stream_seconds":300}`
	operator = `{"name": "Set availability", "condition": [{"field": "stock", "filter": "is_greater_than", "value": {"type": "static", "value": 0}}], ` +
		`"actions": [{"field": "availability", "action": "set", "value": "in stock"}]}`
)

// jobOf returns a job of about size bytes with the wanted members at one end.
func jobOf(size int, first bool) []byte {
	operators := max(1, (size-len(wantedMembers))/len(operator))
	rules := `"operators":[` + strings.Repeat(operator+", ", operators-1) + operator + "]"
	if first {
		return []byte("{" + wantedMembers + "," + rules + "}")
	}
	return []byte("{" + rules + "," + wantedMembers + "}")
}
