# The product needs no C compiler: everything is built and tested with cgo off,
# except under the race detector, which needs it.

GO         ?= go
GOBIN      := $(shell $(GO) env GOPATH)/bin
STATICCHECK_VERSION := v0.8.2
GOVULNCHECK_VERSION := v1.9.0

# Benchmarks: BENCH selects them, COUNT is what benchstat needs for a verdict.
BENCH ?= .
COUNT ?= 6
# Seconds for each fuzz target.
FUZZTIME ?= 5

.PHONY: help build test race bench lint fuzz vuln gpu-tests kernels kernels-check tools clean

help:
	@echo "make build          the commands, into bin/"
	@echo "make test           all tests, without cgo, as the product is built"
	@echo "make race           all tests under the race detector, with internal checks on"
	@echo "make bench          benchmarks: BENCH=regexp COUNT=6, for benchstat"
	@echo "make lint           gofmt, go vet, staticcheck"
	@echo "make fuzz           every fuzz target for FUZZTIME=5 seconds"
	@echo "make vuln           known vulnerabilities in dependencies"
	@echo "make gpu-tests      tests and commands for a machine with a GPU, into .gpu/"
	@echo "make kernels        compile cuda/kernels/*.cu to PTX (needs clang-19)"
	@echo "make kernels-check  fail if the committed PTX is not what the sources give"

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

test:
	CGO_ENABLED=0 $(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race -tags invariants ./...

bench:
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

lint: $(GOBIN)/staticcheck
	scripts/gofmt.sh
	$(GO) vet ./...
	$(GO) vet -tags invariants ./...
	$(GOBIN)/staticcheck ./...

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

vuln: $(GOBIN)/govulncheck
	$(GOBIN)/govulncheck ./...

gpu-tests:
	scripts/gpu-tests.sh

kernels:
	cuda/kernels/build.sh

kernels-check:
	cuda/kernels/build.sh -check

tools: $(GOBIN)/staticcheck $(GOBIN)/govulncheck

$(GOBIN)/staticcheck:
	$(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)

$(GOBIN)/govulncheck:
	$(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

clean:
	rm -rf bin .gpu/payload.tar.xz .gpu/unpacked .gpu/stage .gpu/run
