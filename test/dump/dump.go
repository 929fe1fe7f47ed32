// Package dump writes all fields of a value as text, unexported ones too. Tests compare the text before and after a call that
// must change nothing.
package dump

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Of returns the fields of a value and of all values that it points to, one per line. Of a channel it writes the number of
// queued values, of a function the address of its code. It leaves out the locations of times, and the fields in skip, such as
// "Pool.scratch". Because of the addresses, only texts from the same process are comparable.
func Of(value any, skip ...string) string {
	w := writer{skip: skip, seen: map[visit]bool{}}
	w.write("", reflect.ValueOf(value))
	return w.text.String()
}

type writer struct {
	text strings.Builder
	skip []string
	seen map[visit]bool
}

// visit is a value that was written before: cycles end there.
type visit struct {
	address uintptr
	of      reflect.Type
}

func (w *writer) write(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			break
		}
		if v.Kind() == reflect.Pointer && w.visited(v) {
			fmt.Fprintf(&w.text, "%s: %#x, as above\n", path, v.Pointer())
			return
		}
		w.write(path, v.Elem())
		return
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); !slices.Contains(w.skip, v.Type().Name()+"."+f.Name) && (v.Type() != reflect.TypeFor[time.Time]() || f.Name != "loc") {
				w.write(path+"."+f.Name, v.Field(i))
			}
		}
		return
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(&w.text, "%s: %d elements\n", path, v.Len())
		for i := range v.Len() {
			w.write(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
		return
	case reflect.Map:
		fmt.Fprintf(&w.text, "%s: %d entries\n", path, v.Len())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			w.write(fmt.Sprintf("%s[%v]", path, key), v.MapIndex(key))
		}
		return
	case reflect.Chan:
		fmt.Fprintf(&w.text, "%s: %d queued\n", path, v.Len())
		return
	}
	fmt.Fprintf(&w.text, "%s: %v\n", path, v)
}

func (w *writer) visited(v reflect.Value) bool {
	key := visit{v.Pointer(), v.Type()}
	if w.seen[key] {
		return true
	}
	w.seen[key] = true
	return false
}
