# The door to Slinc. Each line does its own set-up; `make help` lists them.

NAME ?= dev
NODES ?= 0
WITH ?=
PREFIX ?= /usr/local
SLINC_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slinc
export SLINC_CACHE

PYTHON = python3
SETUP_BUILD = @dev/setup build
SETUP_CLUSTER = @dev/setup cluster

.DEFAULT_GOAL := build
.PHONY: build help setup lint test test-lint test-unit test-diff test-sim test-fuzz test-images test-install test-charts test-runner test-e2e soak fuzz bench demo up down \
        status install uninstall coverage clean images release

build: ## build everything (build/plain)
	$(SETUP_BUILD)
	@dev/build plain

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo; echo "  options: NAME=dev NODES=0 REAL=1 WITH=slurm (up, down, status), KEEP=1 (demo), QUICK=1 (bench), SECONDS=30 (fuzz)"
	@echo "           MINUTES=60 SEEDS=10000 SLICE=1/1 (soak)"
	@echo "           VERSION=1.0.0 REGISTRY=registry.example/slinc ARCH=amd64,arm64 KEY=minisign.key URL=https://... (release)"

setup: ## install the Debian packages that are missing
	@dev/setup

test: ## all tests: lint of what changed, unit, differential, simulation, fuzz, install, charts, the runner, images, end to end
	@dev/setup
	@$(PYTHON) tests/run lint unit diff sim fuzz install charts runner images e2e

test-lint test-unit test-diff test-sim test-fuzz test-install test-charts test-runner test-images test-e2e: test-%: ## one part of the tests
	@dev/setup
	@$(PYTHON) tests/run $*

soak: ## cppcheck, all crash cases, SEEDS of simulation, MINUTES of fuzzing, fault tests, mutations, a whole release
	@dev/setup
	@$(if $(MINUTES),FUZZ_MINUTES=$(MINUTES)) $(if $(SEEDS),SIM_SEEDS=$(SEEDS)) $(if $(SLICE),SIM_SLICE=$(SLICE)) $(PYTHON) tests/run --soak

lint: ## format, clang-tidy of every source, layers, banned functions, file heads
	$(SETUP_BUILD)
	@$(PYTHON) tests/run lint-whole

fuzz: ## fuzz every parser for SECONDS (default 30) each
	$(SETUP_BUILD)
	@FUZZ_SECONDS=$(or $(SECONDS),30) $(PYTHON) tests/run fuzz

bench: ## measure against references; table and build/bench.json
	@dev/setup
	@$(PYTHON) tests/bench/run $(if $(QUICK),--quick)

demo: ## a real cluster, a real Slurm, and what they do together
	@dev/setup
	@$(PYTHON) dev/demo $(if $(KEEP),--keep)

up: ## start the development cluster
	$(SETUP_CLUSTER)
	@dev/cluster up --name $(NAME) --nodes $(NODES) $(if $(REAL),--real $(REAL)) --with "$(WITH)" $(if $(SLOT),--slot $(SLOT))

down: ## end it, without a trace
	@dev/cluster down --name $(NAME)

status: ## what runs
	@dev/cluster status --name $(NAME)

images: ## build the container images into the cache
	@dev/setup
	@images/build

release: ## everything that people install, in dist/: VERSION=1.0.0-rc.1 REGISTRY=registry.example/slinc
	@dev/setup release build
	@release/make $(VERSION) $(REGISTRY) $(if $(KEY),--key $(KEY)) $(if $(URL),--url $(URL)) $(if $(ARCH),--arch $(ARCH))

coverage: ## unit test coverage (build/coverage)
	$(SETUP_BUILD)
	@dev/build coverage && $(PYTHON) tests/tools/coverage build/coverage

install: build ## install slinc, the kubectl plugin and libslinc-slurm to PREFIX (default /usr/local), below DESTDIR
	@meson configure build/plain -Dprefix=$(abspath $(PREFIX)) && dev/build plain
	@meson install -C build/plain --no-rebuild --quiet $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@$(if $(DESTDIR),,ldconfig 2>/dev/null || echo "as root, run ldconfig")

uninstall: ## take away what the last install put there
	@ninja -C build/plain uninstall >build/uninstall.log || { cat build/uninstall.log; exit 1; }

clean: ## remove build folders (the cache stays)
	@rm -rf build
