package trace

import (
	"regexp"
	"strings"
)

// forms match the text lines that proxies write by default. Their groups have the names of fields.
var forms = []*regexp.Regexp{
	// HAProxy's httplog, with the key as the first captured header
	regexp.MustCompile(`\[(?P<time>\d+/\w+/\d{4}:[\d:.]+)\] \S+ [^/ ]+/(?P<upstream>\S+) (?:[-+]?\d+/){4}(?P<duration_ms>[-+]?\d+) (?:[^"{]*\{(?P<key>[^|}]*)[^"]*)?`),
	// Amazon's application load balancer
	regexp.MustCompile(`^(?:https?|h2|grpcs|wss?) (?P<ended>\d{4}-\S+Z) \S+ \S+ (?P<upstream>\S+) (?P<part1>\S+) (?P<part2>\S+) (?P<part3>\S+) `),
	// Envoy's and Istio's text
	regexp.MustCompile(`\[(?P<time>\d{4}-\S+)\] "[^"]*" \d+ \S+ (?:\S+ \S+ "[^"]*" )?\d+ \d+ (?P<duration_ms>[-\d]+) \S+ "[^"]*" "[^"]*" "[^"]*" "[^"]*" "(?P<upstream>[^"]*)"`),
	// Traefik's common form
	regexp.MustCompile(`\[(?P<time>\d+/\w+/\d{4}:[\d:]+ [-+]\d+)\] "[^"]*" \d+ \S+ "[^"]*" "[^"]*" \d+ "[^"]*" "(?P<upstream>[^"]*)" (?P<duration>\d+ms)`),
	// the combined form of nginx and Apache, and what is added to it
	regexp.MustCompile(`\[(?P<ended>\d+/\w+/\d{4}:[\d:]+ [-+]\d+)\] "(?:[^"\\]|\\.)*" \d+ \S+(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?(?P<rest>.*)$`),
}

// formed returns the fields of a line of text; nil if its form is unknown.
func formed(line string) fields {
	for _, form := range forms {
		if found := form.FindStringSubmatch(line); found != nil {
			f := fields{}
			for i, name := range form.SubexpNames() {
				f[name] = found[i]
			}
			f.added(f["rest"])
			if f.has("part3") { // -1 is none
				f["duration"] = sumOf(f["part1"], f["part2"], f["part3"])
			}
			return f
		}
	}
	return pairs(line)
}

// pairs returns the fields of a line of name=value pairs; nil if it has no duration.
func pairs(line string) fields {
	f := fields{}
	for _, found := range word.FindAllStringSubmatch(line, -1) {
		if found[1] != "" {
			f[strings.ToLower(found[1])] = strings.Trim(found[2], `"`)
		}
	}
	if f.renamed().unit() < 0 {
		return nil
	}
	return f
}

var (
	word    = regexp.MustCompile(`(?:([\w@.]+)=)?("(?:[^"\\]|\\.)*"|\S+)`)
	address = regexp.MustCompile(`^(?:(?:\w+://)?\S+:\d+|unix:\S+),?$`)
	seconds = regexp.MustCompile(`^\d+\.\d+$`)
	source  = regexp.MustCompile(`^[\d.]+$|^[0-9a-f]*:[0-9a-f:]*:[0-9a-f:]*$`)
	cached  = regexp.MustCompile(`^(?:HIT|MISS|EXPIRED|STALE|UPDATING|REVALIDATED|BYPASS)$`)
)

// added adds the values that an operator appended to a standard form. A value without a name is recognised by its
// shape. The first number with a point is the duration; the first value of unknown shape is the key.
func (f fields) added(text string) {
	some := "" // an address under a name that is not known as an upstream's
	for _, found := range word.FindAllStringSubmatch(text, -1) {
		name, value := strings.ToLower(found[1]), strings.Trim(found[2], `"`)
		switch {
		case name != "":
			if some == "" && address.MatchString(value) {
				some = value
			}
		case address.MatchString(value):
			name = "upstream"
		case seconds.MatchString(value):
			name = "duration"
			if f.has(name) {
				continue
			}
		case cached.MatchString(value):
			name = "hit"
		case f["key"] == "" && value != "|" && !(strings.Contains(value, ".") && source.MatchString(value)):
			if name = "key"; value == "-" {
				value = ""
			}
		default:
			continue
		}
		f[name] = strings.TrimSuffix(value, ",")
	}
	if some != "" && !f.has("upstream") && !f.has("upstream_addr") {
		f["upstream"] = some
	}
}
