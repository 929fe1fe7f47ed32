package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// oracle reads the facts of a job at the default fields as slowly and plainly as it can, with
// encoding/json. It returns "syntax" or "field" as the class of an error.
func oracle(body []byte) (Facts, string) {
	o := &naive{body: body, dec: json.NewDecoder(bytes.NewReader(body)), wanted: map[string]bool{
		"/project_id": true, "/priority": true, "/session_id": true,
		"/timeouts/queue_seconds": true, "/timeouts/evaluate_seconds": true, "/timeouts/stream_seconds": true,
	}}
	o.dec.UseNumber() // a number too large for a float is still a number
	text := bytes.TrimLeft(body, " \t\r\n")
	if len(text) == 0 {
		return Facts{}, "syntax"
	}
	if text[0] != '{' {
		if tok, err := o.dec.Token(); err != nil || tok == json.Delim(']') || tok == json.Delim('}') {
			return Facts{}, "syntax"
		}
		return Facts{}, "field"
	}
	class := o.object("")
	if o.closed && len(bytes.TrimLeft(body[o.dec.InputOffset():], " \t\r\n")) > 0 {
		class = "syntax"
	}
	if class != "" {
		return Facts{}, class
	}
	return o.facts, ""
}

type naive struct {
	body   []byte
	dec    *json.Decoder
	wanted map[string]bool // pointers that may still come
	seen   []string        // pointers that came
	closed bool            // the top object
	facts  Facts
}

func (o *naive) object(pointer string) string {
	if _, err := o.dec.Token(); err != nil {
		return "syntax"
	}
	for {
		tok, err := o.dec.Token()
		if err != nil {
			return "syntax"
		}
		if tok == json.Delim('}') {
			o.drop(pointer)
			o.closed = pointer == ""
			return ""
		}
		name, ok := tok.(string)
		if !ok {
			return "syntax"
		}
		if class := o.member(pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); class != "" {
			return class
		}
		if len(o.wanted) == 0 {
			return ""
		}
	}
}

// drop removes all that is wanted at the pointer or below.
func (o *naive) drop(pointer string) {
	for w := range o.wanted {
		if w == pointer || strings.HasPrefix(w, pointer+"/") {
			delete(o.wanted, w)
		}
	}
}

func (o *naive) member(pointer string) string {
	leaf := map[string]bool{
		"/project_id": true, "/priority": true, "/session_id": true,
		"/timeouts/queue_seconds": true, "/timeouts/evaluate_seconds": true, "/timeouts/stream_seconds": true,
	}[pointer]
	if leaf || pointer == "/timeouts" {
		for _, s := range o.seen {
			if s == pointer {
				return "field"
			}
		}
		o.seen = append(o.seen, pointer)
	}
	if pointer == "/timeouts" && o.peek("{") {
		return o.object(pointer)
	}
	var raw json.RawMessage
	if o.dec.Decode(&raw) != nil {
		return "syntax"
	}
	if !leaf && pointer != "/timeouts" {
		return ""
	}
	o.drop(pointer)
	if string(raw) == "null" {
		return ""
	}
	if last := raw[len(raw)-1]; '0' <= last && last <= '9' && o.dec.InputOffset() == int64(len(o.body)) {
		return "syntax" // the number may have been cut
	}
	if !o.set(pointer, raw) {
		return "field"
	}
	return ""
}

// peek reports whether the value to come begins like c.
func (o *naive) peek(c string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(o.body[o.dec.InputOffset():], " \t\r\n:"), []byte(c))
}

func (o *naive) set(pointer string, raw json.RawMessage) bool {
	var s string
	var n json.Number
	isString := json.Unmarshal(raw, &s) == nil
	isNumber := !isString && json.Unmarshal(raw, &n) == nil
	switch pointer {
	case "/project_id":
		var array []json.RawMessage
		if !isString && json.Unmarshal(raw, &array) == nil {
			return o.several(array)
		}
		if isNumber {
			if s = n.String(); strings.ContainsAny(s, ".eE") {
				return false
			}
			if s == "-0" {
				s = "0"
			}
		}
		o.facts.Project, o.facts.Key = s, Key(s)
		return (isString || isNumber) && len(s) <= MaxProject
	case "/session_id":
		if isNumber {
			s = n.String()
		}
		if len(s) <= maxSession {
			o.facts.Session = s
		}
		return true
	case "/priority":
		if s == "high" {
			o.facts.Priority = selection.High
		}
		return isString && (s == "high" || s == "low")
	case "/timeouts":
		return false
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if !isNumber || err != nil || f < 0 || f > math.MaxInt32 || len(n) > 64 {
		return false
	}
	d := time.Duration(math.Round(f * 1e9))
	if f > 0 {
		d = max(d, 1)
	}
	switch pointer {
	case "/timeouts/queue_seconds":
		o.facts.Queue = d
	case "/timeouts/evaluate_seconds":
		o.facts.Evaluate = d
	case "/timeouts/stream_seconds":
		o.facts.Stream = d
	}
	return true
}

// several takes the projects of an array: each is read as if it were alone.
func (o *naive) several(array []json.RawMessage) bool {
	all := map[string]bool{}
	for _, element := range array {
		one := &naive{}
		if string(element) == "null" || bytes.HasPrefix(element, []byte("[")) || !one.set("/project_id", element) {
			return false
		}
		if all[one.facts.Project] = true; len(all) > maxSeveral && !all[""] || len(all) > maxSeveral+1 {
			return false
		}
	}
	delete(all, "")
	names := slices.Sorted(maps.Keys(all))
	name := strings.Join(names, "+")
	if len(name) > MaxProject && len(names) > 1 {
		name = fmt.Sprintf("%016x", Key(name))
	}
	o.facts.Project, o.facts.Key = name, Key(name)
	if len(names) > 1 {
		o.facts.Data = &Parts{Set: true}
	}
	for _, one := range names {
		if len(names) > 1 {
			o.facts.Data.Parts = append(o.facts.Data.Parts, Part{Key: Key(one)})
		}
	}
	return true
}
