package trace

// Measured is what a sidecar saw of a job from its arrival to its end. Times
// are in seconds; one that was not seen is nil.
type Measured struct {
	// Upstream is the address that gave the answer; "" when none did.
	Upstream string `json:"upstream,omitzero"`
	// Outcome is how the job ended, one word in the form of an attempt's outcome.
	Outcome string `json:"outcome,omitzero"`
	// Cache is what the sidecar believed of the project at Upstream when it
	// claimed it: cached, assumed or none.
	Cache string `json:"cache,omitzero"`
	// Queued is the time in the sidecar's queue, until the first attempt.
	Queued *float64 `json:"queue_s,omitzero"`
	// Wait is the time from reception at the upstream to the start of
	// execution, where the upstream tells it.
	Wait *float64 `json:"wait_s,omitzero"`
	// TTFB and TTLB are the times from the job's arrival to the first and to
	// the last byte of the answer: Turner's time to first and last post.
	TTFB *float64 `json:"ttfb_s,omitzero"`
	TTLB *float64 `json:"ttlb_s,omitzero"`
	// Attempts are in the order of their start.
	Attempts []Attempt `json:"attempts,omitzero"`
}

// Attempt is one try at one upstream.
type Attempt struct {
	Upstream string `json:"upstream"`
	// Outcome is one word: lower-case letters and underscores.
	Outcome string `json:"outcome"`
	// Start and End are in seconds from the job's arrival.
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
}
