package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as 65536, 64KiB, 64MiB or 1GiB.
type Size int64

var units = [...]struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size from a file or a command line.
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 65536, 512KiB, 64MiB or 1GiB", text)
}

// String formats the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range [...]int{2, 1, 0} {
		if s != 0 && int64(s)%units[u].bytes == 0 {
			return strconv.FormatInt(int64(s)/units[u].bytes, 10) + units[u].suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText formats the size like String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
