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
	switch key {
	case "weight":
		err = into(&a.weight, value, parseWeight)
	case "cores":
		err = into(&a.cores, value, parseCores)
	case "started_at":
		err = into(&a.startedAt, value, parseTime)
	case "stops_at":
		err = into(&a.stopsAt, value, parseTime)
	case "preemptible":
		err = into(&a.preemptible, value, parseBool)
	case "draining":
		err = into(&a.draining, value, parseBool)
	default:
		err = errors.New("unknown key")
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", key, quote(value), err)
	}
	return nil
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

func into[T any](to *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*to = v
	}
	return err
}

func parseWeight(s string) (float64, error) {
	w, err := strconv.ParseFloat(s, 64)
	if err != nil || !(w >= 0 && w <= maxWeight) {
		return 0, fmt.Errorf("want a number from 0 to %g", float64(maxWeight))
	}
	return w, nil
}

func parseCores(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxCores {
		return 0, fmt.Errorf("want a number from 0 to %d", maxCores)
	}
	return n, nil
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

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want true or false")
	}
	return b, nil
}
