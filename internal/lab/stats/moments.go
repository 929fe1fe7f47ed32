package stats

import "math"

// Moments holds the count, mean, variance, least and greatest of the values
// added: exactly, up to rounding, by Welford's recurrence. The zero value is empty.
type Moments struct {
	count    uint64
	mean     float64
	squares  float64 // sum of squared distances from the mean
	least    float64
	greatest float64
}

// Add takes in a value.
func (m *Moments) Add(value float64) {
	if m.count == 0 {
		m.least, m.greatest = value, value
	}
	m.least, m.greatest = min(m.least, value), max(m.greatest, value)
	m.count++
	distance := value - m.mean
	m.mean += distance / float64(m.count)
	m.squares += distance * (value - m.mean)
}

// Merge takes in everything that other did (Chan, Golub and LeVeque).
func (m *Moments) Merge(other *Moments) {
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
	m.least, m.greatest = min(m.least, other.least), max(m.greatest, other.greatest)
}

// Count is how many values there were.
func (m *Moments) Count() uint64 { return m.count }

// Mean is 0 without values.
func (m *Moments) Mean() float64 { return m.mean }

// Min is the least value; 0 without values.
func (m *Moments) Min() float64 { return m.least }

// Max is the greatest value; 0 without values.
func (m *Moments) Max() float64 { return m.greatest }

// Sum is that of all values.
func (m *Moments) Sum() float64 { return m.mean * float64(m.count) }

// Variance is that of the values as a whole population, as in the thesis's
// table 6; 0 without values.
func (m *Moments) Variance() float64 {
	if m.count == 0 {
		return 0
	}
	return m.squares / float64(m.count)
}

// Deviation is the standard deviation.
func (m *Moments) Deviation() float64 { return math.Sqrt(m.Variance()) }
