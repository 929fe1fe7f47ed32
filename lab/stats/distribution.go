package stats

// Distribution is everything that a table of the thesis says of one quantity:
// percentiles within a small error, and exact moments.
type Distribution struct {
	sketch  *sketch
	moments moments
}

// NewDistribution returns an empty distribution whose percentiles are right
// within half a percent.
func NewDistribution() *Distribution { return newDistribution(0.005) }

func newDistribution(relative float64) *Distribution {
	return &Distribution{sketch: newSketch(relative)}
}

// Add takes in a value. It panics when that is negative, infinite or no number:
// times and ratios never are.
func (d *Distribution) Add(value float64) {
	d.sketch.add(value)
	d.moments.add(value)
}

// merge takes in everything that other has taken in.
func (d *Distribution) merge(other *Distribution) {
	d.sketch.merge(other.sketch)
	d.moments.merge(&other.moments)
}

// Quantile returns a percentile: q is between 0 and 1. It is never outside the
// smallest and the largest value.
func (d *Distribution) Quantile(q float64) float64 {
	return min(max(d.sketch.quantile(q), d.moments.smallest), d.moments.largest)
}

// Summary returns the columns of the thesis's tables.
func (d *Distribution) Summary() Summary {
	return Summary{
		Count:  d.moments.count,
		Mean:   d.moments.mean,
		Median: d.Quantile(0.5),
		P90:    d.Quantile(0.9),
		P95:    d.Quantile(0.95),
		P99:    d.Quantile(0.99),
		Max:    d.moments.largest,
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

// Columns are the heads of the thesis's tables.
func Columns() []string { return []string{"mean", "median", "p90", "p95", "p99", "max"} }

// Numbers are what stands below them.
func (s Summary) Numbers() []float64 { return []float64{s.Mean, s.Median, s.P90, s.P95, s.P99, s.Max} }

// moments holds the count, mean, variance, smallest and largest of the values
// added. They are exact up to rounding (Welford's recurrence). The zero value is
// empty.
type moments struct {
	count    uint64
	mean     float64
	squares  float64 // sum of squared distances from the mean
	smallest float64
	largest  float64
}

func (m *moments) add(value float64) {
	if m.count == 0 {
		m.smallest, m.largest = value, value
	}
	m.smallest, m.largest = min(m.smallest, value), max(m.largest, value)
	m.count++
	distance := value - m.mean
	m.mean += distance / float64(m.count)
	m.squares += distance * (value - m.mean)
}

// merge takes in everything that other has taken in (Chan, Golub and LeVeque).
func (m *moments) merge(other *moments) {
	if other.count == 0 {
		return
	}
	if m.count == 0 {
		*m = *other
		return
	}
	a, b := float64(m.count), float64(other.count)
	distance := other.mean - m.mean
	m.mean += distance * b / (a + b)
	m.squares += other.squares + distance*distance*a*b/(a+b)
	m.count += other.count
	m.smallest, m.largest = min(m.smallest, other.smallest), max(m.largest, other.largest)
}

// variance is that of the values as a whole population, as in the thesis's
// table 6; 0 without values.
func (m *moments) variance() float64 {
	if m.count == 0 {
		return 0
	}
	return m.squares / float64(m.count)
}
