# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Build results stay outside the clone, so that a fresh clone builds warm. Nothing depends on them being there.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/longshore/target
TOOLS := $(HOME)/.cache/longshore/bin
export PATH := $(TOOLS):$(PATH):/usr/sbin:/sbin
LONGSHORE := $(CARGO_TARGET_DIR)/release/longshore
ARGS ?=
# The real programs that interop tests run against, and the packages that have such tests (feature `interop`).
export LONGSHORE_PEERS ?= $(HOME)/.cache/longshore/peers
PEERS ?=
INTEROP := prove-cluster tiny-driver

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.PHONY: up
up: build ## Build and start everything on this machine (ARGS="--help" shows the options)
	@exec $(LONGSHORE) up $(ARGS)

.PHONY: build
build: toolchain ## Build the release binary
	@cargo build --release --locked --quiet --package longshore

.PHONY: test
test: toolchain kubectl filesystem-tools ## Run every test
	cargo test --workspace --locked --quiet

.PHONY: peers
peers: ## Build the real programs to test against, once (PEERS="etcd csi-sanity" builds only those)
	@bash tools/peers/build.sh $(PEERS)

.PHONY: interop
interop: toolchain kubectl cluster-tools peers ## Run the tests against real Kubernetes and CSI programs
	cargo test --locked --quiet $(foreach package,$(INTEROP),--package $(package) --features $(package)/interop)

.PHONY: lint
lint: toolchain ## Check style and warnings
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- --deny warnings
	cargo clippy --all-targets --locked --quiet $(foreach package,$(INTEROP),--package $(package) --features $(package)/interop) -- --deny warnings

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

.PHONY: bench
bench: build kubectl ## Measure start-up, one volume's life and memory; prints the figures
	@cargo run --release --locked --quiet --package xtask -- bench $(LONGSHORE)

.PHONY: prove
prove: build ## Enumerate the small worlds with larger bounds than the tests use
	@$(LONGSHORE) prove $(ARGS)

# What the machine must bring, with a sentence when it does not.

.PHONY: toolchain
toolchain:
	@command -v cargo >/dev/null || { echo "make: cargo is missing; install a Rust toolchain (1.90 or newer) with rustup first" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: a C compiler is missing (SQLite is compiled in); install it with: apt-get install gcc" >&2; exit 1; }

.PHONY: kubectl
kubectl:
	@command -v kubectl >/dev/null || bash tools/install-kubectl.sh $(TOOLS)

.PHONY: filesystem-tools
filesystem-tools:
	@command -v mkfs.ext4 >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install --yes --quiet e2fsprogs >/dev/null; } \
	  || { echo "make: mkfs.ext4 is missing; install it with: apt-get install e2fsprogs" >&2; exit 1; }

.PHONY: cluster-tools
cluster-tools:
	@command -v openssl >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install --yes --quiet openssl >/dev/null; } \
	  || { echo "make: openssl is missing; install it with: apt-get install openssl" >&2; exit 1; }
	@command -v setpriv >/dev/null || { echo "make: setpriv is missing; install it with: apt-get install util-linux" >&2; exit 1; }
