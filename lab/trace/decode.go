package trace

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decoder reads the entries of one log: pilotfish's own lines, JSON Lines, CSV, or a known text form.
type decoder struct {
	key     *regexp.Regexp // its first group is the key of a line without a field "key"; nil is none
	columns []string       // of a CSV file, after its header was read
	comma   rune
}

const (
	// maxBreaks bounds the line breaks in a quoted value of a CSV file.
	maxBreaks = 20
	// maxDepth bounds the nesting of a line's objects.
	maxDepth = 4
)

// fields are the values of a line by their names in lower case. null is "".
type fields map[string]string

// entry reads a line. It returns nil for a line that is not about a job. more reads the following lines.
func (d *decoder) entry(line []byte, more func() ([]byte, error)) (*entry, error) {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0, text[0] == '#', string(text) == "[", string(text) == "]", bytes.HasPrefix(text, []byte("sep=")):
		return nil, nil
	case d.columns != nil:
		return d.row(line, more)
	case !bytes.ContainsRune(text, '{') && d.head(string(text)):
		return nil, nil
	}
	return d.object(text, maxDepth)
}

// head reads the header of a CSV file, and reports whether the line is one.
func (d *decoder) head(text string) bool {
	for _, comma := range ",;\t" {
		if !strings.ContainsRune(text, comma) {
			continue
		}
		names, err := cells(strings.ToLower(text), comma)
		f := fields{} // each name is its own value
		for _, name := range names {
			f[name] = name
		}
		f.renamed()
		if err == nil && (f.has("key") || f.start() != "" && f.unit() >= 0) {
			d.columns, d.comma = names, comma
			return true
		}
	}
	return false
}

// cells returns the values of a CSV record.
func cells(text string, comma rune) ([]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.TrimLeadingSpace, r.FieldsPerRecord = comma, comma != '\t', -1
	values, err := r.Read()
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		err = bad.Err // its line number counts from the record
	}
	return values, err
}

// row reads a record of a CSV file. If a quoted value has line breaks, the record includes the following lines. If
// these do not complete the record, only the first line is lost, because of a stray quote.
func (d *decoder) row(line []byte, more func() ([]byte, error)) (*entry, error) {
	text := string(line)
	for breaks := 0; strings.Count(text, `"`)%2 == 1 && breaks < maxBreaks; breaks++ {
		next, err := more()
		if err != nil {
			break
		}
		text += "\n" + string(next)
	}
	values, err := cells(text, d.comma)
	if err == nil && len(values) != len(d.columns) {
		err = fmt.Errorf("%d values are not %d", len(values), len(d.columns))
	}
	if err != nil {
		return nil, err
	}
	f := fields{}
	for i, name := range d.columns {
		f[name] = values[i]
	}
	if slices.EqualFunc(values, d.columns, strings.EqualFold) { // the header again, as in concatenated files
		return nil, nil
	}
	return d.access(f, text)
}

// object reads a line of JSON or of a text form. It ignores text before the first brace, where log collectors
// put times and names.
func (d *decoder) object(text []byte, depth int) (*entry, error) {
	if bytes.HasPrefix(text, []byte("[{")) {
		return nil, errors.New("is a JSON array: write one object a line, as with jq -c '.[]'")
	}
	f, err := fields{}, errors.New("is neither JSON nor in a known form")
	brace := bytes.Index(text, []byte(`{"`))
	if brace < 0 {
		brace = bytes.IndexByte(text, '{')
	}
	if brace >= 0 {
		raw := bytes.TrimSuffix(text[brace:], []byte(","))
		if err = f.flatten(raw, maxDepth); err != nil {
			if fixed := repaired(raw); !bytes.Equal(fixed, raw) {
				clear(f)
				raw, err = fixed, f.flatten(fixed, maxDepth)
			}
		}
		if err == nil && ownLine(f) {
			return ownEntry(raw)
		}
	}
	if err != nil {
		known := formed(string(text))
		if known == nil {
			return nil, err
		}
		f = known
	}
	if inner := f.inner(); inner != "" && depth > 0 {
		return d.object([]byte(inner), depth-1)
	}
	return d.access(f, string(text))
}

// access reads a request of another proxy. If no field is the key, the expression finds it in the line.
func (d *decoder) access(f fields, line string) (*entry, error) {
	if d.key != nil && !f.has("key") {
		f["key"] = ""
		if found := d.key.FindStringSubmatch(line); len(found) > 1 {
			f["key"] = found[1]
		}
	}
	return accessEntry(f)
}

// flatten adds the values of an object and of its nested objects by their own names; the outer value wins. Of an array
// it adds the first value.
func (f fields) flatten(raw []byte, depth int) error {
	var values map[string]jsontext.Value
	if err := json.Unmarshal(raw, &values, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	var nested []string
	for name, v := range values {
		if v.Kind() == '[' {
			var list []jsontext.Value
			if json.Unmarshal(v, &list) == nil && len(list) > 0 {
				v = list[0]
			}
			values[name] = v
		}
		if v.Kind() == '{' {
			nested = append(nested, name)
		} else if name = strings.ToLower(name); !f.has(name) {
			f[name] = scalar(v)
		}
	}
	slices.Sort(nested)
	for _, name := range nested {
		if depth > 0 {
			if err := f.flatten(values[name], depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// scalar returns a value as text. A number keeps all its digits.
func scalar(v jsontext.Value) string {
	switch v.Kind() {
	case 'n':
		return ""
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v) // invalid UTF-8 is replaced
		return string(text)
	}
	return string(v)
}

// inner returns the original line if Docker, journald or a log collector wrapped it in an object.
func (f fields) inner() string {
	if f.renamed().unit() >= 0 {
		return ""
	}
	return strings.TrimSpace(cmp.Or(f["log"], f["message"], f["@message"], f["textpayload"], f["line"]))
}

var (
	plus  = regexp.MustCompile(`(:\s*)\+(\d)`)
	empty = regexp.MustCompile(`(:\s*)-?(\s*[,}])`)
)

// repaired makes valid JSON of proxies' almost-JSON: HAProxy's +12, nginx's empty values and \x22.
func repaired(raw []byte) []byte {
	raw = plus.ReplaceAll(raw, []byte("$1$2"))
	raw = empty.ReplaceAll(raw, []byte("${1}null$2"))
	return bytes.ReplaceAll(raw, []byte(`\x`), []byte(`\u00`))
}
