package discovery

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.org/pilotfish/internal/pool"
)

const (
	maxWeight = 1e6
	maxCores  = 1 << 16
	// lifetime is how long after its start a pre-emptible upstream stops, if it
	// does not say. Google's pre-emptible machines live so long.
	lifetime = 24 * time.Hour
)

// endOfTime is where times stop being writable as RFC 3339.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// attributes are what text, a service's meta or a line of a file, tells about an upstream.
type attributes struct {
	weight             float64
	cores              int
	startedAt, stopsAt time.Time
	preemptible        bool
	draining           bool
}

// set takes one key and its value. A wrong value changes nothing.
func (a *attributes) set(key, value string) (err error) {
	next := *a
	switch key {
	case "weight":
		next.weight, err = parseNumber(value, maxWeight)
	case "cores":
		cores, wrong := parseNumber(value, maxCores)
		if next.cores = int(cores); wrong == nil && float64(next.cores) != cores {
			wrong = errors.New("want a whole number")
		}
		err = wrong
	case "started_at":
		next.startedAt, err = parseTime(value)
	case "stops_at":
		next.stopsAt, err = parseTime(value)
	case "preemptible":
		next.preemptible, err = strconv.ParseBool(value)
	case "draining":
		next.draining, err = strconv.ParseBool(value)
	default:
		err = errors.New("unknown key")
	}
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		err = errors.New("want true or false")
	case err == nil:
		*a = next
		return nil
	}
	return fmt.Errorf("%s=%s: %w", key, quote(value), err)
}

// upstream is the upstream at address with these attributes.
func (a attributes) upstream(address string) pool.Upstream {
	if a.preemptible && a.stopsAt.IsZero() && !a.startedAt.IsZero() {
		a.stopsAt = a.startedAt.Add(lifetime)
	}
	return pool.Upstream{
		Address: address, Weight: a.weight, Cores: a.cores,
		StartedAt: a.startedAt, StopsAt: a.stopsAt, Draining: a.draining,
	}
}

func parseNumber(s string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return 0, fmt.Errorf("want a number from 0 to %g", most)
	}
	return x, nil
}

// parseTime reads RFC 3339 or Unix seconds.
func parseTime(s string) (time.Time, error) {
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec >= 0 && sec < float64(endOfTime.Unix()) {
		whole := int64(sec)
		return time.Unix(whole, int64((sec-float64(whole))*1e9)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UTC().Year() < 1 || !t.Before(endOfTime) {
		return time.Time{}, errors.New("want RFC 3339 or Unix seconds")
	}
	return t.UTC(), nil
}
