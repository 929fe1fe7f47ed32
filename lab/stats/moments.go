package stats

// Moments computes the mean and the variance of values by Welford's method, which is numerically stable.
type Moments struct {
	count       int
	mean, parts float64 // parts is the sum of squared deviations from the mean
}

// Add counts a value.
func (m *Moments) Add(value float64) {
	m.count++
	from := value - m.mean
	m.mean += from / float64(m.count)
	m.parts += from * (value - m.mean)
}

// Merge counts all values of other, by the formula of Chan, Golub and LeVeque.
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

// Variance returns the mean squared deviation from the mean; 0 without values.
func (m *Moments) Variance() float64 { return m.parts / float64(max(1, m.count)) }
