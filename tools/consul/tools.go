//go:build tools

// Package tools pins the Consul agent:
//
//	cd tools/consul && go build -o ../../bin/consul github.com/hashicorp/consul
package tools

import _ "github.com/hashicorp/consul"
