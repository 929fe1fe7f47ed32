package pool

import "slices"

// indexFrom is the length at which a set of addresses gets a map.
const indexFrom = 8

// AddressSet is a set of addresses, in the order in which they were added. The zero value and nil are empty sets.
type AddressSet struct {
	list  []string
	array [2]string      // for list: most jobs have one attempt
	index map[string]int // index in list; nil while list is short
}

// NewAddressSet returns the set of these addresses. It keeps the slice.
func NewAddressSet(addresses []string) *AddressSet {
	p := &AddressSet{list: addresses}
	p.grow()
	return p
}

// Add adds an address that is not in the set.
func (p *AddressSet) Add(address string) {
	if p.list == nil {
		p.list = p.array[:0]
	}
	if p.list = append(p.list, address); p.index == nil {
		p.grow()
		return
	}
	p.index[address] = len(p.list) - 1
}

func (p *AddressSet) grow() {
	if len(p.list) < indexFrom {
		return
	}
	p.index = make(map[string]int, 2*len(p.list))
	for i, address := range p.list {
		p.index[address] = i
	}
}

// Has reports whether an address is in the set.
func (p *AddressSet) Has(address string) bool {
	if p == nil {
		return false
	}
	if p.index == nil {
		return slices.Contains(p.list, address)
	}
	i, ok := p.index[address]
	return ok && i < len(p.list)
}

// Len is the number of addresses.
func (p *AddressSet) Len() int {
	if p == nil {
		return 0
	}
	return len(p.list)
}

// WithoutLast returns the set without the address that was added last. The result shares memory and must not be changed.
func (p *AddressSet) WithoutLast() *AddressSet {
	return &AddressSet{list: p.list[:len(p.list)-1], index: p.index}
}
