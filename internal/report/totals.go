package report

import "math"

// total is how often something was observed, and the sum of what was
// observed, since an upstream started.
type total struct{ sum, count float64 }

var unknown = total{sum: math.NaN(), count: math.NaN()}

func (t *total) add(sum, count float64) {
	t.sum += sum
	t.count += count
}

// mean returns the mean of what was observed since before; NaN when that was
// nothing, when either total is unknown, or when the upstream has restarted
// and counts anew.
func (t total) mean(before total) float64 {
	sum, count := t.sum-before.sum, t.count-before.count
	if !(count > 0) || !(sum >= 0) || math.IsInf(sum, 0) || math.IsInf(count, 0) {
		return math.NaN()
	}
	return sum / count
}

// totals are the times, in seconds, that a report's means come from.
type totals struct{ wait, execution, response total }

func unknownTotals() totals { return totals{unknown, unknown, unknown} }

// since returns the mean wait and the mean response time since before. An
// upstream that does not tell response times waits and executes, one after the other.
func (t totals) since(before totals) (wait, response float64) {
	wait = t.wait.mean(before.wait)
	if t.response.count >= 0 {
		return wait, t.response.mean(before.response)
	}
	return wait, wait + t.execution.mean(before.execution)
}
