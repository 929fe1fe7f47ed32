// The conformance suite for HTTP/2 against the job port, in a module of its own so
// that its dependencies stay out of pilotfish's.
module example.org/pilotfish/tools/h2spec

go 1.26.7

require (
	example.org/pilotfish v0.0.0
	github.com/stretchr/testify v1.12.1
	github.com/summerwind/h2spec v2.2.1+incompatible
)

require (
	github.com/fatih/color v1.19.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace example.org/pilotfish => ../..
