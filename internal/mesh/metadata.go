package mesh

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/settings"
)

// Names of the Endpoint Picker Protocol, and of Envoy's filter.
const (
	lbNamespace    = "envoy.lb"
	destinationKey = "x-gateway-destination-endpoint"
	servedKey      = "x-gateway-destination-endpoint-served"

	subsetNamespace = "envoy.lb.subset_hint"
	subsetKey       = "x-gateway-destination-endpoint-subset"

	attributesNamespace = "envoy.filters.http.ext_proc"
	detailsKey          = "response.code_details"
)

// maxSubset is the maximum number of addresses in a subset. Discovery has the same maximum for upstreams.
const maxSubset = 10_000

var errSubset = fmt.Errorf("more than %d addresses in %s", maxSubset, subsetKey)

// structs decodes an entry of a map from namespaces to structs, which map names to values.
func (m *message) structs(entry []byte) error {
	namespace, value, err := keyed(entry)
	if err != nil {
		return err
	}
	return fields(value, func(n protowire.Number, _ uint64, entry []byte) error {
		if n != 1 {
			return nil
		}
		name, value, err := keyed(entry)
		if err != nil {
			return err
		}
		switch [2]string{string(namespace), string(name)} {
		case [2]string{subsetNamespace, subsetKey}:
			return m.addresses(value)
		case [2]string{lbNamespace, servedKey}:
			m.served, err = text(value)
		case [2]string{attributesNamespace, detailsKey}:
			m.details, err = text(value)
		}
		return err
	})
}

// keyed decodes an entry of a map.
func keyed(entry []byte) (key, value []byte, err error) {
	err = fields(entry, func(n protowire.Number, _ uint64, inner []byte) error {
		switch n {
		case 1:
			key = inner
		case 2:
			value = inner
		}
		return nil
	})
	return key, value, err
}

// Fields of google.protobuf.Value.
const stringValue, structValue, listValue protowire.Number = 3, 5, 6

// text decodes a Value that is a text.
func text(value []byte) (s string, err error) {
	err = fields(value, func(n protowire.Number, _ uint64, inner []byte) error {
		if n == stringValue {
			s = stored(inner)
		}
		return nil
	})
	return s, err
}

// addresses decodes the Value of a subset. Some data planes send a list, others a string with commas.
func (m *message) addresses(value []byte) error {
	m.hasSubset = true
	return fields(value, func(n protowire.Number, _ uint64, inner []byte) error {
		switch n {
		case stringValue:
			for address := range strings.SplitSeq(string(inner), ",") {
				if err := m.address(address); err != nil {
					return err
				}
			}
		case listValue:
			return fields(inner, func(_ protowire.Number, _ uint64, one []byte) error {
				address, err := text(one)
				if err != nil {
					return err
				}
				return m.address(address)
			})
		}
		return nil
	})
}

func (m *message) address(address string) error {
	if address = strings.TrimSpace(address); len(m.subset) == maxSubset {
		return errSubset
	}
	if address != "" {
		m.subset = append(m.subset, canonical(stored([]byte(address))))
	}
	return nil
}

// canonical returns an address in the form that discovery uses, or another text in lower case.
func canonical(address string) string {
	if known, err := settings.Address(address); err == nil {
		return known
	}
	return strings.ToLower(address)
}
