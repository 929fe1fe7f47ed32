// The Consul agent that the cluster tests run, in a module of its own so that its
// dependencies stay out of pilotfish's.
module example.org/pilotfish/tools/consul

go 1.26.7

require (
	github.com/hashicorp/consul v1.22.7
	github.com/hashicorp/consul/api v1.34.5
)
