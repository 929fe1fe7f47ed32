package cli

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// related reports whether a key equals, contains or is inside misfit, a key with a value of the wrong type. An
// element of a list counts as the whole list.
func related(misfit, key string) bool {
	misfit, _, _ = strings.Cut(misfit, "[")
	return within(misfit, key) || within(key, misfit)
}

// within reports whether a key is outer or is in its section.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// plainly describes the values of Go types.
var plainly = map[string]string{
	"string": "text", "bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 on",
	"float64": "a number", "time.Duration": "a duration with its unit, such as 500ms, 5s or 2m",
}

// expected describes, for an error message, what a key accepts: the values of its Go type, or a section with these keys.
func expected(typ string, keys []string) string {
	switch {
	case plainly[typ] != "":
		return plainly[typ]
	case strings.HasPrefix(typ, "["):
		return "a list"
	case len(keys) > 0:
		return "a section with the keys " + strings.Join(keys, ", ")
	}
	return "a value"
}

// meantBy returns the suggestion for a key from the method Meant of the document's type, if it has one.
func meantBy(into any, key string) string {
	if top, ok := into.(interface{ Meant(key string) string }); ok {
		return top.Meant(key)
	}
	return ""
}

// unknown returns the message for an unknown key, with a suggestion or the known keys.
func unknown(key string, into any) string {
	if meant := meantBy(into, key); meant != "" {
		return "unknown key; did you mean " + meant + "?"
	}
	cut := strings.LastIndex(key, ".")
	name, known := key[cut+1:], keysWithin(key[:max(cut, 0)], into)
	if meant := settings.DidYouMean(name, known); meant != "" {
		return "unknown key" + meant
	}
	elsewhere := slices.DeleteFunc(keysOf(reflect.TypeOf(into), ""), func(k string) bool { return !strings.HasSuffix(k, "."+name) })
	if n := len(elsewhere); n > 0 && n <= 3 {
		return "unknown key; did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	return "unknown key; those known here are " + strings.Join(known, ", ")
}

var element = regexp.MustCompile(`\[\d+\]`)

func keysWithin(section string, into any) (names []string) {
	section = strings.TrimPrefix(element.ReplaceAllString(section, "")+".", ".")
	for _, key := range keysOf(reflect.TypeOf(into), "") {
		if name, ok := strings.CutPrefix(key, section); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// keysOf returns the keys of a type, including those of its sections and lists.
func keysOf(t reflect.Type, prefix string) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			all = append(all, prefix+name)
			all = append(all, keysOf(f.Type, prefix+name+".")...)
		}
	}
	return all
}
