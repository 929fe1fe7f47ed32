// Package sim runs sidecars and modelled rule processing servers against a
// trace, in simulated time: one loop and one heap of events, no goroutines.
//
// The sidecars are the real thing: internal/dispatch, internal/pool,
// internal/breaker, pkg/selection and pkg/overload are the code that pilotfish
// runs. Only the servers, the network between and the passing of time are modelled. A server
// is the executor of the thesis (3.4, 3.5): cores, a queue of joblets ordered
// by priority and then submission, equal joblets shared, results in a cache
// of bounded bytes that evicts the oldest. Clairvoyant is the one policy that
// knows more than a sidecar can.
package sim
