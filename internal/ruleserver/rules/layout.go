package rules

import "slices"

// layout returns the columns of a feed after the operators, in order.
//
// A new column stands to the right of what it is made from: of the rightmost
// column that its value reads or, if it reads none, that its operator's conditions
// read. Without such a column it goes to the end. New columns of one operator
// beside the same column keep the order in which the job writes them. Example: a
// job sets `availability` to a static text where `stock` is greater than zero, so
// `availability` stands right of `stock`.
//
// The order depends only on the operators, never on the items: the output has the
// same columns on every day.
func layout(columns []string, operators []operator) ([]string, error) {
	columns = slices.Clone(columns)
	for _, o := range operators {
		tested := fieldsOf(o.conditions)
		newest := map[string]string{} // what this operator last placed right of a column
		for _, a := range slices.Concat(o.actions, o.otherwise) {
			if !a.creates() || slices.Contains(columns, a.field) {
				continue
			}
			if len(columns) == maxColumns {
				return nil, tooLarge("more than %d columns", maxColumns)
			}
			anchor := rightmost(columns, a.reads())
			if anchor < 0 {
				anchor = rightmost(columns, tested)
			}
			if anchor < 0 {
				columns = append(columns, a.field)
				continue
			}
			beside := columns[anchor]
			if name, ok := newest[beside]; ok {
				anchor = slices.Index(columns, name)
			}
			columns = slices.Insert(columns, anchor+1, a.field)
			newest[beside] = a.field
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

// creates reports whether the action adds the field to items that lack it.
func (a action) creates() bool {
	switch a.kind {
	case actionSet, actionCopy, actionCombine, actionAppend, actionPrepend:
		return true
	}
	return false
}

func (a action) reads() (names []string) {
	for _, v := range a.values {
		if v.field != "" {
			names = append(names, v.field)
		}
	}
	return names
}

func fieldsOf(conditions []condition) (names []string) {
	for _, c := range conditions {
		names = append(names, c.field)
		if c.value.field != "" {
			names = append(names, c.value.field)
		}
		names = append(names, fieldsOf(c.children)...)
	}
	return names
}
