package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

func TestJudgement(t *testing.T) {
	verdict := func(family string, seeds int, ratio stats.Interval) results.Verdict {
		v := results.Verdict{Family: family, Run: "expected", Rivals: 30, Seeds: seeds, Unanswered: 1.25}
		for _, name := range results.MarkNames() {
			v.Marks = append(v.Marks, results.Mark{Name: name, Ours: 1234.6, Best: 0.5, Rival: "dynamic 25", Ratio: ratio})
			v.Equals = append(v.Equals, results.Mark{Name: name, Best: 0.75, Rival: "spread", Ratio: stats.Interval{Value: ratio.Value / 2}})
		}
		return v
	}
	j := results.Sum([]results.Verdict{
		verdict("day", 3, stats.Interval{Value: 0.5, Low: 0.45, High: 0.6}),
		verdict("hung", 1, stats.Interval{Value: 1.2}),
	})
	var out strings.Builder
	require.NoError(t, Judgement(&out, &j))
	text := out.String()
	assert.True(t, strings.HasPrefix(text, "expected over its best rival, of 30."), text)
	assert.Regexp(t, `\nday +0\.50 \[0\.45, 0\.60\] .*\nhung +1\.20 +1\.20`, text)
	assert.Regexp(t, `\nratio, as many sidecars .*\nday +0\.25 `, text)
	assert.Regexp(t, `\nday +1,235 +0\.500 +dynamic 25 +0\.750 +spread\n`, text)
	assert.Contains(t, text, "\nday                               1.25              0.00\n")
	assert.Regexp(t, `\nlow wait +0\.85 +1\.20 +1\.1 +hung\n`, text)
	assert.Regexp(t, `\nfetches +0\.85 +1\.20 +1\.3 +none\n`, text)
	assert.Regexp(t, `\nlow wait +0\.42 +0\.60 +1\.1 +none\n`, text, "beside its equals")

	require.NoError(t, Judgement(&out, &results.Judgement{}))
	assert.Equal(t, text, out.String(), "nothing is said of nothing")
}
