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
)

// endOfTime is where times stop being writable as RFC 3339.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// facts is what text, a service's meta or a line of a file, tells about an upstream.
type facts struct {
	weight             float64
	cores              int
	startedAt, stopsAt time.Time
	preemptible        bool
	draining           bool
}

// errUnknownFact is for a key that is none of ours.
var errUnknownFact = errors.New("unknown key")

// learn takes one key and its value. A wrong value changes nothing.
func (f *facts) learn(key, value string) (err error) {
	switch key {
	case "weight":
		err = into(&f.weight, value, parseWeight)
	case "cores":
		err = into(&f.cores, value, parseCores)
	case "started_at":
		err = into(&f.startedAt, value, parseTime)
	case "stops_at":
		err = into(&f.stopsAt, value, parseTime)
	case "preemptible":
		err = into(&f.preemptible, value, parseBool)
	case "draining":
		err = into(&f.draining, value, parseBool)
	default:
		err = errUnknownFact
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", key, quote(value), err)
	}
	return nil
}

// upstream joins the facts. A pre-emptible upstream that does not say when it
// stops does so its lifetime after its start.
func (f facts) upstream(address string, lifetime time.Duration) pool.Upstream {
	if f.preemptible && f.stopsAt.IsZero() && !f.startedAt.IsZero() {
		f.stopsAt = f.startedAt.Add(lifetime)
	}
	return pool.Upstream{
		Address: address, Weight: f.weight, Cores: f.cores,
		StartedAt: f.startedAt, StopsAt: f.stopsAt, Draining: f.draining,
	}
}

// check validates an upstream that was read whole, and writes it canonically.
func check(u *pool.Upstream) (err error) {
	if u.Address, err = canonical(u.Address); err != nil {
		return err
	}
	if !(u.Weight >= 0 && u.Weight <= maxWeight) {
		return fmt.Errorf("weight %v: want a number from 0 to %g", u.Weight, float64(maxWeight))
	}
	if u.Cores < 0 || u.Cores > maxCores {
		return fmt.Errorf("cores %d: want a number from 0 to %d", u.Cores, maxCores)
	}
	u.StartedAt, u.StopsAt = u.StartedAt.UTC(), u.StopsAt.UTC()
	return nil
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
