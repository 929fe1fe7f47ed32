package workload

import (
	"slices"
	"sort"
)

// hours weighs the hours of a day against each other, from midnight on.
type hours [24]float64

// officeHours is when people work with a web application.
func officeHours() hours {
	return hours{2, 1, 1, 1, 1, 2, 6, 20, 60, 95, 100, 98, 80, 92, 98, 92, 80, 50, 28, 22, 18, 14, 8, 4}
}

// scheduleHours is when schedules run: around the clock. Most run early in the
// morning, because feeds must be fresh then, and fewest late in the evening.
func scheduleHours() hours {
	return hours{70, 68, 72, 80, 88, 95, 100, 98, 95, 92, 90, 88, 86, 86, 86, 84, 82, 78, 74, 70, 66, 64, 64, 66}
}

// at is the weight at an offset from the start hour, as a share of the peak.
func (h hours) at(offset float64, start int) float64 {
	return h[(start+int(offset/hour))%24] / slices.Max(h[:])
}

// curve spreads arrivals over a duration by the hour of the day.
type curve struct {
	duration float64
	// sums[i] is the weight of the first i hours.
	sums []float64
}

func (h hours) curve(duration float64, start int) curve {
	c := curve{duration: duration, sums: []float64{0}}
	for at := 0.0; at < duration; at += hour {
		sum := c.sums[len(c.sums)-1]
		c.sums = append(c.sums, sum+h.at(at, start)*min(hour, duration-at))
	}
	return c
}

// at is the offset by which the given share of all arrivals, 0 to 1, has come.
func (c curve) at(share float64) float64 {
	last := len(c.sums) - 1
	weight := share * c.sums[last]
	i := sort.Search(last, func(i int) bool { return c.sums[i+1] > weight })
	if i == last {
		return c.duration
	}
	begin := float64(i) * hour
	length := min(hour, c.duration-begin)
	return begin + length*(weight-c.sums[i])/(c.sums[i+1]-c.sums[i])
}
