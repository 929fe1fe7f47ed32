package cli

import (
	"fmt"
	"net/url"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Encode writes a struct as the YAML that Decode reads it from. Sections that
// are absent stay so, and passwords in URLs are replaced by xxxxx.
func Encode(from any) ([]byte, error) {
	var n yaml.Node
	if err := n.Dump(from); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	tidy(&n)
	return yaml.Dump(&n)
}

// tidy drops what is absent, hides passwords, and puts lists into one line.
func tidy(n *yaml.Node) {
	switch n.Kind {
	case yaml.SequenceNode:
		n.Style |= yaml.FlowStyle
	case yaml.MappingNode:
		n.Content = slices.Concat(slices.DeleteFunc(slices.Collect(slices.Chunk(n.Content, 2)), func(pair []*yaml.Node) bool {
			return pair[1].Tag == "!!null"
		})...)
	case yaml.ScalarNode:
		if u, err := url.Parse(n.Value); err == nil && u.User != nil {
			n.Value = u.Redacted()
		}
	}
	for _, inner := range n.Content {
		tidy(inner)
	}
}
