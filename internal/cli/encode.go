package cli

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/settings"
)

// Encode writes a struct as the YAML that Decode reads it from. Sections that
// are absent stay so, and passwords in URLs are replaced by xxxxx.
func Encode(from any) ([]byte, error) {
	text, err := yaml.Dump(encode(reflect.ValueOf(from)))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return text, nil
}

func encode(v reflect.Value) *yaml.Node {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return scalarNode("", shortest(x))
	case fmt.Stringer:
		return scalarNode("", x.String())
	}
	short := v.Kind() == reflect.Struct && isShort(v.Type())
	if short {
		section := reflect.New(v.Type())
		section.Elem().Set(v)
		if text, ok := section.Interface().(settings.Short).Text(); ok {
			return scalarNode("!!str", text)
		}
	}
	if v.Kind() == reflect.Slice && v.Len() == 1 && isShort(v.Type().Elem()) {
		return encode(v.Index(0))
	}
	switch v.Kind() {
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		eachField(v, func(name string, field reflect.Value) {
			if (field.Kind() != reflect.Pointer || !field.IsNil()) && !(short && field.IsZero()) {
				n.Content = append(n.Content, scalarNode("!!str", name), encode(field))
			}
		})
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			n.Content = append(n.Content, encode(v.Index(i)))
		}
		return n
	case reflect.String:
		return scalarNode("!!str", redacted(v.String()))
	case reflect.Float64:
		return scalarNode("", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	}
	return scalarNode("", fmt.Sprint(v.Interface()))
}

func scalarNode(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// shortest is 2m for what Go writes as 2m0s.
func shortest(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// redacted hides the password of a URL that has one.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	return u.Redacted()
}
