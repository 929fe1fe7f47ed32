package trace

import "fmt"

// Kind is what a job asks of an upstream.
type Kind uint8

const (
	// Process runs a project's rules: all four joblets.
	Process Kind = iota
	// Prefetch only loads a project's data into the cache (the thesis, 3.2).
	Prefetch
)

// String returns the word in a trace.
func (k Kind) String() string {
	if k == Prefetch {
		return "prefetch"
	}
	return "process"
}

// MarshalText returns the word in a trace.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the word in a trace.
func (k *Kind) UnmarshalText(text []byte) error {
	switch string(text) {
	case "process":
		*k = Process
	case "prefetch":
		*k = Prefetch
	default:
		return fmt.Errorf("unknown kind %q: it is process or prefetch", text)
	}
	return nil
}
