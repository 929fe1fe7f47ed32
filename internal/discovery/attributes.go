package discovery

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	maxWeight = 1e6
	maxCores  = 1 << 16
	// lifetime is the assumed uptime of a pre-emptible upstream without stops_at:
	// the maximum of Google's pre-emptible machines.
	lifetime = 24 * time.Hour
)

// endOfTime is the first time that RFC 3339 cannot represent.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// attributes are the properties of an upstream in a service's meta or a line of a file.
type attributes struct {
	pool.Upstream
	preemptible bool
}

// weightKey is the one attribute that Consul does not keep in a service's meta. keys are all attributes.
const weightKey = "weight"

var keys = []string{weightKey, "cores", "started_at", "stops_at", "preemptible", "draining", "for"}

// set sets one attribute. An invalid value leaves the attribute unset.
func (a *attributes) set(key, value string) (err error) {
	switch key {
	case weightKey:
		a.Weight, err = parseNumber(value, maxWeight)
	case "cores":
		var cores float64
		if cores, err = parseNumber(value, maxCores); cores != math.Trunc(cores) {
			cores, err = 0, errors.New("want a whole number")
		}
		a.Cores = int(cores)
	case "started_at":
		a.StartedAt, err = parseTime(value)
	case "stops_at":
		a.StopsAt, err = parseTime(value)
	case "preemptible":
		a.preemptible, err = strconv.ParseBool(value)
	case "draining":
		a.Draining, err = strconv.ParseBool(value)
	case "for":
		if a.Heavy = value == "heavy"; !a.Heavy {
			err = errors.New("want heavy")
		}
	default:
		err = errors.New("unknown key" + settings.DidYouMean(key, keys))
	}
	if errors.Is(err, strconv.ErrSyntax) {
		err = errors.New("want true or false")
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", settings.Cut(key, 80), settings.Quote(value), err)
	}
	return nil
}

// at returns the upstream at address with these attributes.
func (a attributes) at(address string) pool.Upstream {
	if a.preemptible && a.StopsAt.IsZero() && !a.StartedAt.IsZero() {
		a.StopsAt = a.StartedAt.Add(lifetime)
	}
	a.Address = address
	return a.Upstream
}

func parseNumber(s string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return 0, fmt.Errorf("want a number from 0 to %g", most)
	}
	return x, nil
}

// parseTime parses a time as RFC 3339 or Unix seconds.
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
