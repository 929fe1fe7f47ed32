# make demo   four rule processing servers, the sidecar, one job; then it serves
# make test   everything, race detector on; prints how long each part takes
SHELL := /bin/bash
GO    ?= go
BIN   := $(CURDIR)/bin
PART  := ./tools/part

.PHONY: demo build test quick lint bench clean

demo:
	$(GO) run ./cmd/pilotfish demo $(DEMO)

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/ ./cmd/...

# The quick loop: under a minute.
quick:
	$(GO) test ./...

# Everything, the cheap before the dear. Each part says how long it took.
test:
	@$(PART) "all of make test" $(MAKE) --no-print-directory \
		test-unit test-long test-fuzz test-bench test-deploy test-prometheus test-image test-clients test-cluster soak

.PHONY: test-unit test-long test-fuzz test-bench
test-unit:
	@$(PART) "unit, race" $(GO) test -race -shuffle=on -timeout 15m ./...

# What is too slow for the quick loop.
test-long:
	@$(PART) "long, race" $(GO) test -race -tags long -run Long -timeout 20m ./...

test-fuzz:
	@$(PART) "fuzz smoke" ./tools/fuzz 30000

test-bench:
	@$(PART) "benchmarks, once each" $(GO) test -run '^$$' -bench . -benchtime 1x ./...

lint: $(BIN)/golangci-lint
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	$(BIN)/golangci-lint run ./...
	./tools/vulncheck $(BIN)/govulncheck

$(BIN)/golangci-lint: tools/lint/go.sum
	cd tools/lint && $(GO) build -o $(BIN)/ tool
	touch $@

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf $(BIN)

# What is in deploy/, with the programs and the types that read it.
.PHONY: test-deploy test-image
test-deploy:
	./tools/need promtool:prometheus systemd-analyze:systemd
	@$(PART) "deploy" $(GO) -C tools/deploy test -count=1 -timeout 5m ./...

# The image's final stage, built and started.
test-image:
	@$(PART) "image" ./tools/deploy/image

# Programs that submit jobs, through a real sidecar: curl, Python's requests,
# aiohttp and httpx, node's fetch.
.PHONY: test-clients
test-clients: $(BIN)/venv/installed
	./tools/need curl node:nodejs
	@PYTHON=$(BIN)/venv/bin/python NODE=node \
		$(PART) "clients" $(GO) test -tags clients -run Clients -count=1 -v -timeout 10m ./internal/e2e

$(BIN)/venv/installed: internal/e2e/clients/requirements.txt
	python3 -c 'import ensurepip' && python3 -m venv $(BIN)/venv || { ./tools/need virtualenv && virtualenv -q $(BIN)/venv; }
	$(BIN)/venv/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# The load of upstreams as a real Prometheus server tells it.
.PHONY: test-prometheus
test-prometheus:
	./tools/need prometheus
	@$(PART) "prometheus" $(GO) test -race -tags cluster -run RealPrometheus -count=1 -timeout 10m ./internal/report

# 200 jobs a second through one sidecar while upstreams fail, for two minutes;
# SOAK=10m for longer.
.PHONY: soak
soak:
	@$(PART) "soak" $(GO) test -tags soak -run Soak -count=1 -v -timeout 2h ./internal/e2e

# Real Consul agents, and servers that are killed, drained and paused while
# they come and go; Toxiproxy before servers. It prints the ledger of all jobs.
.PHONY: test-cluster
test-cluster: $(BIN)/consul $(BIN)/toxiproxy-server
	@$(PART) "cluster, race" $(GO) test -race -tags cluster -run 'Cluster|RealConsul' -count=1 -v -timeout 15m ./internal/e2e ./internal/discovery

# Built once; four minutes of two cores.
$(BIN)/consul: tools/consul/go.sum
	cd tools/consul && $(GO) build -o $@ github.com/hashicorp/consul
	touch $@

$(BIN)/toxiproxy-server: tools/toxiproxy/go.sum
	cd tools/toxiproxy && $(GO) build -o $@ github.com/Shopify/toxiproxy/v2/cmd/server
	touch $@
