//go:build soak

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The books find what they are there to find.
func TestSoakRules(t *testing.T) {
	good := ending{kind: whole, status: 200, visit: "0", right: true}
	lost := ending{kind: own, status: 502}
	done := visit{upstream: "a", read: true, wrote: true, whole: true, status: 200}
	mute := visit{upstream: "a", read: true}
	elsewhere := func(v visit, number int, upstream string) visit {
		v.number, v.upstream = number, upstream
		return v
	}
	for _, test := range []struct {
		says    string
		endings []ending
		visits  []visit
		lines   int
		status  int
	}{
		{"", []ending{good}, []visit{done}, 1, 200},
		{"", []ending{{kind: whole, status: 200, visit: "1", right: true}}, []visit{mute, elsewhere(done, 1, "b")}, 1, 200},
		{"", []ending{lost}, []visit{mute, elsewhere(mute, 1, "b")}, 1, 502},
		{"", []ending{{kind: aborted}}, []visit{mute}, 0, 0},
		{"not exactly one ending", nil, []visit{done}, 1, 200},
		{"not exactly one ending", []ending{good, good}, []visit{done}, 1, 200},
		{"no answer at all", []ending{{kind: nothing}}, []visit{done}, 1, 200},
		{"not exactly one line in the sidecar's log", []ending{good}, []visit{done}, 2, 200},
		{"the sidecar logged another status than it answered", []ending{good}, []visit{done}, 1, 500},
		{"lost, though it could have been retried", []ending{lost}, []visit{mute}, 1, 502},
		{"an answer from nowhere", []ending{good}, nil, 1, 200},
		{"the answer is not the right one", []ending{{kind: whole, status: 200, visit: "0"}}, []visit{done}, 1, 200},
		{"the answer is not that of the last attempt", []ending{good}, []visit{mute, elsewhere(done, 1, "b")}, 1, 200},
		{"the status is not the upstream's", []ending{{kind: whole, status: 500, visit: "0", right: true}}, []visit{done}, 1, 500},
		{"an answer that was not sent in full came whole", []ending{good}, []visit{{read: true, wrote: true, status: 200}}, 1, 200},
		{"a cut answer that never began", []ending{{kind: cut, visit: "0", right: true}}, []visit{mute}, 1, 0},
		{"the body was damaged on its way", []ending{good}, []visit{{damaged: true}}, 1, 200},
		{"another attempt after an answer had begun", []ending{good}, []visit{done, elsewhere(done, 1, "b")}, 1, 200},
		{"the same upstream again", []ending{good}, []visit{mute, done}, 1, 200},
		{"executed more than twice", []ending{good}, []visit{mute, elsewhere(mute, 1, "b"), elsewhere(done, 2, "c")}, 1, 200},
	} {
		j := entry{endings: test.endings}
		for i := range test.visits {
			j.visits = append(j.visits, &test.visits[i])
		}
		for range test.lines {
			j.logged = append(j.logged, logged{Status: test.status})
		}
		assert.Equal(t, test.says, j.fault())
	}
	for outcome, says := range map[string]string{"moved": "", "timed_out": "", "no_answer": "another attempt after an answer had begun"} {
		late, answered := elsewhere(done, 1, "a"), elsewhere(done, 0, "b")
		j := entry{endings: []ending{good}, visits: []*visit{&answered, &late}, logged: []logged{{Status: 200, Attempts: []attempted{
			{Upstream: "a", Outcome: outcome}, {Upstream: "b", Outcome: "answered"},
		}}}}
		j.inOrder()
		assert.Equal(t, says, j.fault(), outcome)
	}
	unmet := entry{endings: []ending{lost}, logged: []logged{{Status: 502, Attempts: []attempted{{Upstream: "a", Outcome: "timed_out"}, {Upstream: "b", Outcome: "no_answer"}}}}}
	assert.Empty(t, unmet.fault(), "the upstreams did not get round to it")
	declined := visit{read: true, notStarted: true}
	other, third := elsewhere(declined, 1, "b"), elsewhere(declined, 2, "c")
	for _, test := range []struct {
		says    string
		visits  []*visit
		refused bool
	}{
		{"", []*visit{&declined, &other, &third}, false},
		{"", []*visit{&declined}, true},
		{"turned away, though it could have been retried", []*visit{&declined}, false},
		{"turned away, though an upstream may have begun it", []*visit{&mute, &other, &third}, false},
		{"turned away, though an upstream may have begun it", []*visit{&mute, &other}, true},
	} {
		j := entry{
			endings: []ending{{kind: whole, status: 503}}, visits: test.visits,
			logged: []logged{{Status: 503, Refused: test.refused, Attempts: make([]attempted, len(test.visits))}},
		}
		assert.Equal(t, test.says, j.fault())
	}
	overBudget := entry{endings: []ending{lost}, visits: []*visit{&mute}, logged: []logged{{Status: 502, Refused: true}}}
	assert.Empty(t, overBudget.fault())
}
