package stats

// Row is one row of the thesis's tables 4, 5 and 7.
type Row struct {
	Run      string   `json:"run"`
	Priority string   `json:"priority"`
	Quantity Quantity `json:"quantity"`
	Summary
}

// VarianceRow is one row of the thesis's table 6.
type VarianceRow struct {
	Run string `json:"run"`
	// All is over all upstreams; Upstreams holds that of each.
	All       float64   `json:"all"`
	Upstreams []float64 `json:"upstreams"`
}
