package rules

import "slices"

// layout gives the columns of a feed after the operators, in order.
//
// A new field stands next to what it is made from: directly right of the
// rightmost column among those its value reads or, when its value reads none,
// among those its operator's conditions read. With neither, it goes to the end.
// Several new fields of one operator beside the same column keep the order in
// which they are written. So `availability`, set to a static text when `stock`
// is greater than zero, stands right of `stock`.
//
// The order depends on the operators alone, never on the items, so that an
// output has the same columns whatever today's data is.
func layout(columns []string, operators []Operator) ([]string, error) {
	columns = slices.Clone(columns)
	for _, o := range operators {
		tested := fieldsOf(o.Conditions)
		newest := map[string]string{} // what this operator last placed right of a column
		for _, a := range slices.Concat(o.Actions, o.Else) {
			if !a.creates() || slices.Contains(columns, a.Field) {
				continue
			}
			if len(columns) == MaxColumns {
				return nil, tooLarge("more than %d columns", MaxColumns)
			}
			anchor := rightmost(columns, a.reads())
			if anchor < 0 {
				anchor = rightmost(columns, tested)
			}
			if anchor < 0 {
				columns = append(columns, a.Field)
				continue
			}
			beside := columns[anchor]
			if name, ok := newest[beside]; ok {
				anchor = slices.Index(columns, name)
			}
			columns = slices.Insert(columns, anchor+1, a.Field)
			newest[beside] = a.Field
		}
	}
	return columns, nil
}

// rightmost is the greatest index in columns of any of the names, or -1.
func rightmost(columns, names []string) int {
	index := -1
	for _, name := range names {
		index = max(index, slices.Index(columns, name))
	}
	return index
}

// creates says whether the action gives the field to items that lack it.
func (a Action) creates() bool {
	switch a.Kind {
	case Set, Copy, Combine, Append, Prepend:
		return true
	}
	return false
}

func (a Action) reads() (names []string) {
	for _, v := range a.Values {
		if v.Field != "" {
			names = append(names, v.Field)
		}
	}
	return names
}

func fieldsOf(conditions []Condition) (names []string) {
	for _, c := range conditions {
		names = append(names, c.Field)
		if c.Value.Field != "" {
			names = append(names, c.Value.Field)
		}
		names = append(names, fieldsOf(c.Children)...)
	}
	return names
}
