# Targets for building and testing Weir. "make" lists them.

# The objects in sockmap/ come from this version of clang.
CLANG_MAJOR := 14
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 30s
BENCH       ?=
UP          ?=
VERSION     ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
COMMIT      ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

GO     ?= go
GOTEST := $(GO) run ./tests/gotest
UNIT   := ./agent/... ./cmd/... ./k8s/... ./l7/... ./sockmap/...
WHOLE  := ./tests/...

.DEFAULT_GOAL := help
.PHONY: help build generate generate-check fmt lint deps test test-root race cluster cluster-binaries fuzz bench demo check clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

build: ## build bin/weir
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o bin/weir ./cmd/weir

generate: ## compile bpf/*.bpf.c; what comes out is committed, so that building needs no clang
	@have=$$(clang -dumpversion 2>/dev/null | cut -d. -f1); test "$$have" = $(CLANG_MAJOR) || \
		{ echo "clang $(CLANG_MAJOR) is wanted, found: $${have:-none}"; exit 1; }
	$(GO) generate ./sockmap

generate-check: generate ## fail if sockmap/ is not what bpf/*.bpf.c compiles to, or that is not laid out
	clang-format --dry-run --Werror bpf/*.bpf.c
	git diff --exit-code --stat -- sockmap

fmt: ## format the code
	gofmt -w agent cmd k8s l7 sockmap tests
	@! command -v clang-format >/dev/null || clang-format -i bpf/*.bpf.c

lint: ## go.mod, gofmt, vet, staticcheck
	@files=$$(gofmt -l agent cmd k8s l7 sockmap tests); test -z "$$files" || { echo "not formatted: $$files"; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

deps: ## install what the tests need besides Go (Debian, as root); say what is missing otherwise
	@sh tests/deps.sh

cluster-binaries: deps ## build kube-apiserver and kube-controller-manager for the tests, as root: ten minutes, once
	@[ "$$(id -u)" != 0 ] || $(GO) run ./tests/cluster/up -build

cluster: cluster-binaries ## run a Kubernetes control plane by hand; as root: UP="-nodes 2" for nodes with pods, too
	$(GO) run ./tests/cluster/up $(UP)

test: deps cluster-binaries ## all tests; those with network namespaces need root and say so if it is missing
	$(GOTEST) $(UNIT)
	$(GOTEST) -count=1 -p 1 -timeout 14m $(WHOLE)

test-root: ## all tests, with sudo if need be; a skip is a failure
	@if [ "$$(id -u)" = 0 ]; then WEIR_REQUIRE_ROOT=1 $(MAKE) test; \
	else sudo --preserve-env=PATH,HOME,GOFLAGS,GOPROXY env WEIR_REQUIRE_ROOT=1 $(MAKE) test; fi

race: deps ## unit tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GOTEST) -race $(UNIT)

fuzz: ## run each fuzz target for FUZZTIME (default 30s)
	@set -e; for pkg in $$($(GO) list $(UNIT)); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

bench: build deps ## compare with nginx and haproxy, about 6 minutes; BENCH="-rows 13B -rounds 3" for less
	@mkdir -p bin tests/bench/results
	$(GO) build -o bin/bench ./tests/bench
	bin/bench -weir bin/weir -out tests/bench/results/latest.txt $(BENCH)

demo: build ## run weir with two small backends and sample manifests
	@exec bin/weir demo

check: lint race test ## what CI runs: lint, unit tests with the race detector, all tests

clean: ## remove what was built
	rm -rf bin
