// Package e2e tests the program that is shipped: pilotfish as a process of its
// own, with real sockets to submitters and upstreams. The rest is told by build
// tags: clients needs Python, cluster Consul and Toxiproxy, and soak takes minutes.
package e2e
