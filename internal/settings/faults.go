// Package settings is shared by all packages with settings in a configuration file or a
// scenario: sizes, addresses, and the list of faults.
//
// The idiom is the same everywhere. A package declares its settings as a struct with yaml
// tags, returns the defaults from a function, and checks the values in a method
//
//	func (s Settings) Check(f *settings.Faults)
//
// that changes nothing. A file is decoded over the defaults, so that a zero in the file
// is a value and never means the default.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Fault is an invalid value or, as a warning, an unwise one.
type Fault struct {
	Key     string // as in a file: retry.attempts, runs[1].policy
	Text    string // what is wrong with its value
	Warning bool   // the value is valid, but unwise
}

func (f Fault) Error() string { return f.Key + ": " + f.Text }

// Faults collects faults. The zero value is empty and ready to use.
type Faults struct {
	prefix string
	all    *Faults // the list of the whole file; nil if this is it
	found  []Fault
}

// In returns the list for a section: keys that are added to it are relative to the section.
func (f *Faults) In(section string) *Faults {
	return &Faults{prefix: f.key(section), all: cmp.Or(f.all, f)}
}

// All returns the faults and warnings in the order in which they were added.
func (f *Faults) All() []Fault { return cmp.Or(f.all, f).found }

// Err joins the faults without the warnings; nil if there are none.
func (f *Faults) Err() error {
	var all []error
	for _, one := range f.All() {
		if !one.Warning {
			all = append(all, one)
		}
	}
	return errors.Join(all...)
}

// Add adds a fault of a key's value; the key "" is the section itself.
func (f *Faults) Add(key, format string, args ...any) {
	all := cmp.Or(f.all, f)
	all.found = append(all.found, Fault{Key: f.key(key), Text: fmt.Sprintf(format, args...)})
}

// Warn adds a warning about a key's value.
func (f *Faults) Warn(key, format string, args ...any) {
	f.Add(key, format, args...)
	all := f.All()
	all[len(all)-1].Warning = true
}

func (f *Faults) key(key string) string {
	switch {
	case f.prefix == "":
		return key
	case key == "" || key[0] == '[':
		return f.prefix + key
	}
	return f.prefix + "." + key
}

// Positive adds a fault if a duration is zero or negative.
func (f *Faults) Positive(key string, d time.Duration) {
	if d <= 0 {
		f.Add(key, "%v must be positive", d)
	}
}

// NotNegative adds a fault if a duration is negative.
func (f *Faults) NotNegative(key string, d time.Duration) {
	if d < 0 {
		f.Add(key, "%v must not be negative", d)
	}
}

// AtLeast adds a fault if a number is below least.
func (f *Faults) AtLeast(key string, n, least int64) {
	if n < least {
		f.Add(key, "%d must be at least %d", n, least)
	}
}

// Within adds a fault if a number is not between least and most.
func (f *Faults) Within(key string, n, least, most int) {
	if n < least || n > most {
		f.Add(key, "%d is not between %d and %d", n, least, most)
	}
}

// Between adds a fault if a number is not between least and most, or is NaN.
func (f *Faults) Between(key string, x, least, most float64) {
	if !(x >= least && x <= most) {
		f.Add(key, "%v is not between %v and %v", x, least, most)
	}
}

// OneOf adds a fault if a word is not one of words.
func (f *Faults) OneOf(key, word string, words []string) {
	if !slices.Contains(words, word) {
		f.Add(key, "%q is not one of %s%s", word, strings.Join(words, ", "), DidYouMean(word, words))
	}
}

// DidYouMean returns "; did you mean x?" for the most similar word x, which differs
// in the fewest letters and in at most a third of them. It returns "" if there is none.
func DidYouMean(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	nearest, least := "", float64(1+max(1, len(word)/3))
	for _, w := range words {
		n := float64(edits(strings.ToLower(word), strings.ToLower(w)))
		if len(word) >= 3 && (strings.HasPrefix(word, w) || strings.HasPrefix(w, word)) {
			n /= float64(len(word) + len(w)) // warning and warn
		}
		if n < least {
			nearest, least = w, n
		}
	}
	if nearest == "" {
		return ""
	}
	return "; did you mean " + nearest + "?"
}

// edits returns the edit distance of a and b: letters to insert, delete, replace or swap with
// the next one.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// URL adds a fault if a text is not an http or https URL, or has credentials, which would be logged.
func (f *Faults) URL(key, text string) {
	switch u, err := url.Parse(text); {
	case err == nil && u.User != nil, err != nil && strings.Contains(text, "@"): // the default message would show the credentials
		f.Add(key, "it holds credentials, which do not belong in a configuration file")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		f.Add(key, "%q is not a URL such as http://127.0.0.1:9090", text)
	}
}
