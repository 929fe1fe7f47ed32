package stats

// Moments is the mean and the variance of values, by Welford's method: sums of squares would lose the small ones.
type Moments struct {
	count       int
	mean, parts float64 // parts is the sum of squared distances from the mean
}

// Add takes in a value.
func (m *Moments) Add(value float64) {
	m.count++
	from := value - m.mean
	m.mean += from / float64(m.count)
	m.parts += from * (value - m.mean)
}

// Merge takes in everything that other has taken in (Chan, Golub and LeVeque).
func (m *Moments) Merge(other Moments) {
	if other.count == 0 {
		return
	}
	all := float64(m.count + other.count)
	from := other.mean - m.mean
	m.parts += other.parts + from*from*float64(m.count)*float64(other.count)/all
	m.mean += from * float64(other.count) / all
	m.count += other.count
}

// Variance is the mean squared distance from the mean; 0 without values.
func (m *Moments) Variance() float64 { return m.parts / float64(max(1, m.count)) }
