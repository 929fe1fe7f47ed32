package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// Choice is the upstream that an attempt goes to, and why. It does not change.
type Choice struct {
	// Address is the upstream's address. Claimed is when the job was counted there.
	Address string
	Claimed time.Time
	// Cache is whether the project's data is cached there.
	Cache selection.Cache
	Explanation
	// Expected is how long the job will probably hold a core there, in seconds, including the fetch of data that is not
	// cached. It is learned from the jobs with its length key, from the jobs of its project, or from all jobs. 0 is
	// unknown.
	Expected float64
	// Fallbacks are the upstreams to try if this one does not respond, the best first, if the Request asks for them.
	Fallbacks []string
}

// Explanation is the reasons for choosing an upstream.
type Explanation struct {
	// Cost is its cost, if the policy computes costs.
	Cost selection.Cost
	// RunnerUp is the upstream with the next lowest cost, RunnerUpCost; "" if there are no costs, or no other upstream.
	RunnerUp     string
	RunnerUpCost float64
	// Shadow is the choice of the shadow policy, "" if there is none. ShadowCost is its cost by the policy in use,
	// and ShadowCache is whether the project's data is cached there.
	Shadow      string
	ShadowCost  float64
	ShadowCache selection.Cache
	// Panic is set if the breakers were ignored.
	Panic bool
	// Heavy is set for a heavy job if there are upstreams for heavy jobs. Dedicated is set if it went to such an
	// upstream.
	Heavy, Dedicated bool
	// Prefetched is set for the first job that finds its data cached because of a prefetch in the last minute.
	Prefetched bool
}
