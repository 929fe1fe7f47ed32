package stats

// Distribution is a Sketch with exact Moments: everything that a table of the
// thesis says of one quantity.
type Distribution struct {
	Moments
	sketch *Sketch
}

// NewDistribution returns an empty distribution whose percentiles are right
// within half a percent.
func NewDistribution() *Distribution { return newDistribution(0.005) }

func newDistribution(relative float64) *Distribution {
	return &Distribution{sketch: NewSketch(relative)}
}

// Add takes in a value; see Sketch.Add.
func (d *Distribution) Add(value float64) {
	d.sketch.Add(value)
	d.Moments.Add(value)
}

// Merge takes in everything that other did.
func (d *Distribution) Merge(other *Distribution) {
	d.sketch.Merge(other.sketch)
	d.Moments.Merge(&other.Moments)
}

// Quantile is the sketch's, never outside the least and the greatest value.
func (d *Distribution) Quantile(q float64) float64 {
	return min(max(d.sketch.Quantile(q), d.Min()), d.Max())
}

// Summary returns the columns of the thesis's tables.
func (d *Distribution) Summary() Summary {
	return Summary{
		Count:  d.Count(),
		Mean:   d.Mean(),
		Median: d.Quantile(0.5),
		P90:    d.Quantile(0.9),
		P95:    d.Quantile(0.95),
		P99:    d.Quantile(0.99),
		Max:    d.Max(),
	}
}

// Summary is one quantity of one run and priority, as in the thesis's tables
// 4, 5 and 7; all are 0 without values.
type Summary struct {
	// Count is 0 where a table does not tell it.
	Count  uint64  `json:"count,omitzero"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}
