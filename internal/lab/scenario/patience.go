package scenario

import (
	"fmt"
	"time"
)

// patience is a time limit, or none: negative.
type patience time.Duration

// never is no limit.
const never = patience(-1)

// UnmarshalText reads a duration such as 1s, or never.
func (p *patience) UnmarshalText(text []byte) error {
	word := string(text)
	if word == "never" {
		*p = never
		return nil
	}
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is neither a time above 0, such as 1s, nor never", word)
	}
	*p = patience(d)
	return nil
}

// String is what the scenario says.
func (p patience) String() string {
	if p < 0 {
		return "never"
	}
	return time.Duration(p).String()
}
