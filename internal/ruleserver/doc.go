// Package ruleserver is the reference rule processing server: the upstream that
// pilotfish is tried, measured and tested with. It follows the thesis's section
// 3: a job fetches its project's product data, applies rules to it and streams
// the result back, in joblets that share a number of cores and a cache.
//
// The rules are in package rules, the cores and the cache in package executor;
// this package is the HTTP interface over both.
package ruleserver
