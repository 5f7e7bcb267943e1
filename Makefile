# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Build results stay outside the clone, so that a fresh clone builds warm. Nothing depends on them being there.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/longshore/target
TOOLS := $(HOME)/.cache/longshore/bin
export PATH := $(TOOLS):$(PATH):/usr/sbin:/sbin
LONGSHORE := $(CARGO_TARGET_DIR)/release/longshore
QUICK := $(CARGO_TARGET_DIR)/quick/longshore
XTASK := $(CARGO_TARGET_DIR)/release/xtask
ARGS ?=
DENY := 0.20.2
MUTANTS := 27.1.0
# The real programs that interop tests run against, the packages that have such tests (feature `interop`), the tests,
# and the programs they run.
export LONGSHORE_PEERS ?= $(HOME)/.cache/longshore/peers
PEERS ?=
# The images that tests look into.
export LONGSHORE_IMAGES ?= $(CARGO_TARGET_DIR)/images-quick
INTEROP_FEATURES := prove-cluster/interop,longshore/interop,tiny-driver/interop
# Tests with a target of their own.
OTHER_FEATURES := xtask/interop,prove-cluster/kubelet,longshore/e2e
INTEROP_TESTS := --test control_plane --test peers --test interop --test sanity --test wire
INTEROP_PEERS := etcd kube-apiserver kube-controller-manager kube-scheduler csi-provisioner csi-resizer csi-snapshotter snapshot-controller csi-sanity hostpathplugin record-translations helm

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.PHONY: up
up: build kubectl ext4-tools ## Build and start everything on this machine (ARGS="--help" shows the options)
	@exec $(QUICK) up $(ARGS)

.PHONY: build
build: toolchain ## Build the binary that `make up` starts, in about half the time of a release
	@cargo build --profile quick --locked --package longshore

.PHONY: release
release: toolchain ## Build the small, fast binary that is measured and shipped
	@cargo build --release --locked --package longshore
	@echo "$(LONGSHORE)"

# Container images: a static binary for each of these architectures, as Rust calls them, and what is in $(BINARIES), such as
# linux/arm64=FILE.
PROFILE ?= release
IMAGES ?= $(CARGO_TARGET_DIR)/images
BINARIES ?=
MACHINE := $(subst arm64,aarch64,$(shell uname -m))
ARCHITECTURES ?= $(MACHINE)
OTHERS = $(filter-out $(MACHINE),$(ARCHITECTURES))
triple = $(1)-unknown-linux-gnu
platform = linux/$(subst aarch64,arm64,$(subst x86_64,amd64,$(1)))
# Another architecture's programs are linked by its own compiler; cc finds that by itself.
compiler = $(if $(filter $(1),$(MACHINE)),cc,$(1)-linux-gnu-gcc)
LINKERS = $(foreach other,$(OTHERS),CARGO_TARGET_$(shell echo $(other) | tr a-z A-Z)_UNKNOWN_LINUX_GNU_LINKER=$(call compiler,$(other)))
# No folder of the machine is named in the binary. Of two that fit a path the last counts: the build's may be in the clone.
REMAP = $(foreach pair,$${CARGO_HOME:-$$HOME/.cargo}=/cargo $(CURDIR)=/longshore $(CARGO_TARGET_DIR)=/target,--remap-path-prefix=$(pair))
# The time of everything in images and charts is that of the commit.
DATE = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))

.PHONY: image
image: toolchain packages cross ## Make the container images, without a daemon: layouts, archives, bills of materials (PROFILE=quick builds faster, ARCHITECTURES="x86_64 aarch64" makes them for both)
	@$(LINKERS) RUSTFLAGS="-C target-feature=+crt-static $(REMAP)" \
	  cargo build --profile $(PROFILE) --locked --package longshore $(foreach one,$(ARCHITECTURES),--target $(call triple,$(one)))
	@cargo run --quiet --locked --package xtask -- image --date $(DATE) --out $(IMAGES) \
	  $(foreach one,$(ARCHITECTURES),--binary $(call platform,$(one))=$(CARGO_TARGET_DIR)/$(call triple,$(one))/$(PROFILE)/longshore) \
	  $(foreach one,$(ARCHITECTURES),--libc $(call platform,$(one))=$$($(call compiler,$(one)) -print-file-name=libc.a)) \
	  $(foreach binary,$(BINARIES),--binary $(binary)) \
	  --debian deploy/image/debian.list --cache $(HOME)/.cache/longshore/packages

CHART = $(IMAGES)/longshore-$(shell sed -n 's/^version: //p' deploy/helm/longshore/Chart.yaml).tgz
.PHONY: chart
chart: ## Pack the Helm chart
	@mkdir -p $(IMAGES)
	@tar --sort=name --mtime=@$(DATE) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C deploy/helm -c longshore | gzip -9n >$(CHART)
	@echo "$(CHART)"

.PHONY: test
test: toolchain kubectl filesystem-tools ## Run every test
	@bash tools/test.sh

.PHONY: peers
peers: ## Build the real programs to test against, once (PEERS="etcd csi-sanity" builds only those)
	@bash tools/peers/build.sh $(PEERS)

.PHONY: interop
interop: toolchain kubectl cluster-tools filesystem-tools ## Run the tests against real Kubernetes and CSI programs
	@$(MAKE) --no-print-directory peers PEERS="$(INTEROP_PEERS)"
	@cargo test --workspace --locked --no-run --features $(INTEROP_FEATURES) $(INTEROP_TESTS)
	cargo test --workspace --locked --quiet --features $(INTEROP_FEATURES) $(INTEROP_TESTS)

# Not part of `interop`: the static binary is a second build of everything.
.PHONY: interop-image
interop-image: toolchain filesystem-tools ## Make the images in the quick profile and look into them: valid, complete, and the driver in one works
	@$(MAKE) --no-print-directory peers PEERS=check-image
	@$(MAKE) --no-print-directory image PROFILE=quick IMAGES=$(LONGSHORE_IMAGES)
	cargo test --package xtask --locked --features xtask/interop --test image

# What the tests on a real kubelet run.
KUBELET_PEERS := etcd kube-apiserver kube-controller-manager kube-scheduler kubelet csi-provisioner csi-attacher csi-resizer csi-snapshotter snapshot-controller hostpathplugin
KUBELET_TEST := cargo test --package longshore --locked --test kubelet --features

.PHONY: interop-kubelet
interop-kubelet: toolchain kubectl cluster-tools filesystem-tools node-tools ## Run our driver and sidecars as pods beneath a real kubelet: as deployed, by the images and the chart, mixed with the Go programs
	@$(MAKE) --no-print-directory peers PEERS="$(KUBELET_PEERS) helm"
	@$(MAKE) --no-print-directory image chart PROFILE=quick IMAGES=$(LONGSHORE_IMAGES)
	cargo test --package prove-cluster --locked --test node --features kubelet
	$(KUBELET_TEST) kubelet -- --test-threads=1 --nocapture

.PHONY: e2e
e2e: toolchain kubectl cluster-tools filesystem-tools node-tools ## Run Kubernetes' own storage suite on our driver beside the Go hostpath driver (LONGSHORE_RECORD=1 keeps the table)
	@$(MAKE) --no-print-directory peers PEERS="$(KUBELET_PEERS) e2e.test ginkgo agnhost"
	$(KUBELET_TEST) e2e -- suite --nocapture

.PHONY: kubelet-cluster
kubelet-cluster: toolchain kubectl cluster-tools node-tools ## Start a control plane with one real node to try things on; prints its KUBECONFIG, ends with its input
	@$(MAKE) --no-print-directory peers PEERS="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet"
	@cargo run --package prove-cluster --features interop --locked --quiet -- --kubelet

RECORD := $(CURDIR)/crates/rules-translate/src/tests/golden.jsonl
PROTOS := $(CURDIR)/crates/rules-store/tests/protos.txt
.PHONY: record-translations
record-translations: ## Ask Kubernetes' own library for the translations that ours are compared with, and keep its answers
	@cd tools/peers/csi-translation-lib && go run . <$(RECORD) >$(RECORD).new && mv $(RECORD).new $(RECORD)

.PHONY: record-protos
record-protos: ## Read the field numbers of the messages in our schema tables from Kubernetes' modules, and keep them
	@tools/record-protos.sh >$(PROTOS).new && mv $(PROTOS).new $(PROTOS)

.PHONY: record
record: toolchain kubectl filesystem-tools ## Write what is printed now into documents, golden files and tidy lists; read the difference like code
	LONGSHORE_RECORD=1 cargo test --workspace --locked --quiet --no-fail-fast --lib --bin longshore --test scripts --test tidy

.PHONY: lint
lint: toolchain ## Check style and warnings
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features $(INTEROP_FEATURES),$(OTHER_FEATURES) --locked --quiet -- --deny warnings

.PHONY: package
package: toolchain ## Pack the translation library and its vocabulary as a registry would get them
	cargo package --package api --package rules-translate --no-verify --allow-dirty --offline --quiet

# The advisories are not in it: their database is fetched anew each time, and what it holds is not up to a change.
.PHONY: deny
deny: toolchain ## Check licences, sources and duplicate dependencies with cargo-deny (installs it first, minutes, once)
	@command -v cargo-deny >/dev/null || cargo install cargo-deny --version $(DENY) --locked --quiet --root $(dir $(TOOLS))
	cargo deny --locked check licenses bans sources

# A workspace of its own, which `make test` and `make lint` do not see: its tests run here, before it is believed.
MUTANTS_TOOL := tools/mutants/Cargo.toml
.PHONY: mutants
mutants: mutants-tool ## Break each rule on purpose and count how many tests notice (CRATES="rules-node", MISSED=1 for those missed last time)
	@cargo run --quiet --locked --manifest-path $(MUTANTS_TOOL) -- $(if $(MISSED),--missed) $(CRATES)

.PHONY: mutants-sample
mutants-sample: mutants-tool ## The same for one crate, chosen by the commit
	@cargo run --quiet --locked --manifest-path $(MUTANTS_TOOL) -- --sample $$(git rev-parse HEAD)

.PHONY: mutants-tool
mutants-tool: cargo-mutants
	@cargo fmt --check --manifest-path $(MUTANTS_TOOL)
	@cargo clippy --quiet --locked --all-targets --manifest-path $(MUTANTS_TOOL) -- --deny warnings
	@cargo test --quiet --locked --manifest-path $(MUTANTS_TOOL) >/dev/null

# It only lists mutants, so that it need not be fast.
.PHONY: cargo-mutants
cargo-mutants: toolchain
	@command -v cargo-mutants >/dev/null || { echo "make: installing cargo-mutants, once; this takes a minute or two" >&2; \
	  CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-mutants --version $(MUTANTS) --locked --debug --quiet --root $(dir $(TOOLS)); }

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

.PHONY: storm
storm: toolchain filesystem-tools ## Kill the driver N times at random under load and look for damage (N=500)
	LONGSHORE_STORM_KILLS=$(or $(N),500) cargo test --workspace --locked --quiet --test storm -- --nocapture

.PHONY: fuzz
fuzz: toolchain ## Send the API server what nobody should: bodies, protobuf, patches, paths, selectors, tokens, damaged files, for SECONDS each (SECONDS=60), in both profiles
	LONGSHORE_FUZZ_SECONDS=$(or $(SECONDS),60) cargo test --workspace --locked --quiet --test fuzz -- --nocapture --test-threads=8
	LONGSHORE_FUZZ_SECONDS=$(or $(SECONDS),60) cargo test --workspace --locked --quiet --profile quick --test fuzz -- --nocapture --test-threads=8

.PHONY: bench
bench: bench-up bench-load bench-pods bench-process bench-driver bench-sidecars bench-controllers ## Measure everything but bench-scale, bench-migrate and bench-translate

.PHONY: bench-up
bench-up: bench-build kubectl ## Measure start-up, one volume's life and memory; prints the figures (ARGS="--beside OTHER": another build in turn)
	@$(XTASK) bench $(LONGSHORE) $(ARGS)

.PHONY: bench-load
bench-load: bench-build ## Measure claims while others write, watch, hold connections open and send huge bodies
	@$(XTASK) bench-load $(LONGSHORE)

.PHONY: bench-pods
bench-pods: bench-build kubectl ext4-tools ## Measure a hundred pods with a volume each, at once on one node
	@$(XTASK) bench-pods $(LONGSHORE)

.PHONY: bench-migrate
bench-migrate: bench-build ## Measure `longshore migrate plan` on a dump of 50,000 volumes
	@$(XTASK) bench-migrate $(LONGSHORE)

.PHONY: bench-process
bench-process: bench-build ## Measure a pod's process beside runc
	@$(call install,runc,runc)
	@$(XTASK) bench-process $(LONGSHORE)

.PHONY: bench-driver
bench-driver: bench-build filesystem-tools ## Measure the driver beside the Go hostpath driver (DOC=docs/benchmarks.md keeps the tables)
	@$(MAKE) --no-print-directory peers PEERS=hostpathplugin
	@$(XTASK) bench-driver $(LONGSHORE) --json $(CARGO_TARGET_DIR)/bench-driver.json $(if $(DOC),--doc $(DOC)) $(ARGS)

.PHONY: bench-sidecars
bench-sidecars: bench-build kubectl cluster-tools ## Measure the sidecars beside the Go sidecars on a real API server (ARGS=--quick, ARGS=--full)
	@$(MAKE) --no-print-directory peers PEERS="etcd kube-apiserver csi-provisioner csi-attacher csi-resizer"
	@$(XTASK) bench-sidecars $(LONGSHORE) --json $(CARGO_TARGET_DIR)/bench-sidecars.json $(if $(DOC),--doc $(DOC)) $(ARGS)

.PHONY: bench-controllers
bench-controllers: bench-build kubectl cluster-tools ## Measure the controllers beside kube-controller-manager on a real API server (ARGS=--quick, ARGS=--full)
	@$(MAKE) --no-print-directory peers PEERS="etcd kube-apiserver kube-controller-manager csi-provisioner csi-attacher"
	@$(XTASK) bench-controllers $(LONGSHORE) --json $(CARGO_TARGET_DIR)/bench-controllers.json $(if $(DOC),--doc $(DOC)) $(ARGS)

.PHONY: bench-scale
bench-scale: bench-build ## Measure a restart, memory and events in a cluster of 150,000 volumes and 5,000 nodes, without a server
	@$(XTASK) bench-scale $(ARGS)

# Of our side only the library is built in release.
.PHONY: bench-translate
bench-translate: toolchain ## Measure the translation library beside Kubernetes' own, in turn on one core (DOC=docs/benchmarks.md, ARGS=--quick)
	@$(MAKE) --no-print-directory peers PEERS=bench-translations
	@cargo bench --quiet --locked --package rules-translate --benches --no-run
	@cargo run --quiet --locked --package xtask -- bench-translate $(if $(DOC),--doc $(DOC)) $(ARGS)

# In one build, so that both have the same dependencies.
.PHONY: bench-build
bench-build: toolchain
	@cargo build --release --locked --package longshore --package xtask

.PHONY: prove
prove: release ## Enumerate the small worlds with larger bounds than the tests use
	@$(LONGSHORE) prove $(ARGS)

# Each night from another seed; one that breaks a law is printed and can be walked again.
.PHONY: prove-nightly
prove-nightly: release ## Walk 50,000 times through the whole life of two volumes (WALKS=100000, SEED=7)
	@$(LONGSHORE) prove life --walks $(or $(WALKS),50000) --seed $(or $(SEED),$(shell date +%Y%m%d)00000)

# What the machine must bring, with a sentence when it does not.

# A program of a Debian package: installed by root, asked for otherwise.
define install
command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
  && { echo "make: installing $(2), for $(1)" >&2; apt-get install --yes --quiet $(2) >/dev/null; }; } \
  || { echo "make: $(1) is missing; install it with: apt-get install $(2)" >&2; exit 1; }
endef

.PHONY: toolchain
toolchain:
	@command -v cargo >/dev/null || { echo "make: cargo is missing; install a Rust toolchain (1.90 or newer) with rustup first" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: a C compiler is missing (SQLite is compiled in); install it with: apt-get install gcc" >&2; exit 1; }

.PHONY: packages
packages:
	@{ command -v apt-get && command -v dpkg-deb; } >/dev/null || { echo "make: apt-get and dpkg-deb are missing; the driver's image is made of Debian's packages, on Debian or Ubuntu" >&2; exit 1; }

.PHONY: cross
cross:
	@$(foreach other,$(filter-out x86_64 aarch64,$(ARCHITECTURES)),echo "make: there are no images for $(other); name x86_64 and aarch64 in ARCHITECTURES" >&2; exit 1;)
	@$(foreach other,$(OTHERS),ls "$$($${RUSTC:-rustc} --print target-libdir --target $(call triple,$(other)) 2>/dev/null)"/libstd-*.rlib >/dev/null 2>&1 \
	  || { echo "make: this Rust toolchain cannot build for $(other); run: rustup target add $(call triple,$(other))" >&2; exit 1; }; \
	  $(call install,$(other)-linux-gnu-gcc,gcc-$(subst _,-,$(other))-linux-gnu);)

.PHONY: kubectl
kubectl:
	@command -v kubectl >/dev/null || bash tools/install-kubectl.sh $(TOOLS)

# What the example of `make up` needs; without root nothing is formatted.
.PHONY: ext4-tools
ext4-tools:
	@[ "$$(id -u)" != 0 ] || { $(call install,mkfs.ext4,e2fsprogs); }

.PHONY: filesystem-tools
filesystem-tools:
	@$(call install,mkfs.ext4,e2fsprogs)
	@$(call install,mkfs.xfs,xfsprogs)
	@$(call install,mkfs.btrfs,btrfs-progs)

.PHONY: cluster-tools
cluster-tools:
	@$(call install,openssl,openssl)
	@command -v setpriv >/dev/null || { echo "make: setpriv is missing; install it with: apt-get install util-linux" >&2; exit 1; }

.PHONY: node-tools
node-tools:
	@$(call install,containerd,containerd)
	@$(call install,runc,runc)
	@$(call install,busybox,busybox-static)
	@$(call install,/usr/lib/cni/bridge,containernetworking-plugins)
	@$(call install,ip,iproute2)
