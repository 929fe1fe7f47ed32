package cli

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// scan reads a value from its text, in a file or on a command line.
func scan(text string, into reflect.Value) (err error) {
	switch own := into.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return own.UnmarshalText([]byte(text))
	case *time.Duration:
		*own, err = duration(text)
		return err
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		on := strings.EqualFold(text, "true")
		if !on && !strings.EqualFold(text, "false") {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		into.SetBool(on)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || into.OverflowInt(n) {
			return fmt.Errorf("%q is not a whole number", text)
		}
		into.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number from 0 on", text)
		}
		into.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(goNumber(text), 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		into.SetFloat(f)
	default:
		panic(fmt.Sprintf("BUG: a %v has no text", into.Type()))
	}
	return nil
}

// expected names what scan reads into a value.
func expected(into reflect.Value) string {
	switch into.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return "a value"
	case *time.Duration:
		return "a duration such as 5s"
	}
	switch into.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// goNumber is a number as Go writes it. YAML has a dot in .inf and .nan.
func goNumber(text string) string {
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case ".nan", ".inf":
		return strings.Replace(text, ".", "", 1)
	}
	return text
}

// duration reads a duration. A number without a unit is refused: some read it as
// seconds, some as milliseconds.
func duration(s string) (time.Duration, error) {
	length, err := time.ParseDuration(s)
	if err == nil {
		return length, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%s has no unit: write %ss", s, s)
	}
	return 0, fmt.Errorf("%q is not a duration such as 500ms, 5s or 2m", s)
}
