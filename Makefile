# `make demo` and `make test` need Python 3.11 or newer, make and a package index; they install everything else into .venv.
.DEFAULT_GOAL := help
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
LOOPS := $(VENV)/.loops
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
PEERS := .venv-peers
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
# Some quick tests wait for other processes, and most full ones do: more workers than cores keep the cores busy. JOBS=N sets their number.
QUICK_JOBS := $(or $(JOBS),$(shell expr $(CORES) + 1))
FULL_JOBS := $(or $(JOBS),$(shell expr 2 \* $(CORES)))
PYTEST := $(BIN)/pytest --dist worksteal -q
# Without compiled modules, each of the thousand processes of a test run compiles its imports again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install dev demo stack test check quick full lint types docs format schemas lock pin faults model simulate fuzz soak audit sbom bench kafka dist notes clean

##@ Start

help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

install: $(LOOPS)  ## install rankwatch and its locked dependencies into .venv (1.5 min)

$(STAMP): pyproject.toml deploy/requirements.lock
	@test -n "$(PYTHON)" || { echo "Install Python 3.11 or newer, or set PYTHON=/path/to/python: none is on PATH"; exit 1; }
	@echo "Installing rankwatch into $(VENV) (40 s)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-compile -r deploy/requirements.lock -r deploy/requirements-build.lock
	$(PIP) --no-build-isolation --editable .
	$(BIN)/python -m compileall -q monitor schemas stats
	@$(BIN)/rankwatch report deploy/compose/examples/demo.jsonl >/dev/null  # compiles what a command imports, not all of scipy
	@touch $(STAMP)

$(LOOPS): $(STAMP) $(wildcard monitor/engine/loop/*.py)
	@echo "Compiling the loops of the fold (half a minute)"
	$(BIN)/python -m monitor.compile_loops
	@touch $(LOOPS)

dev: $(DEV_STAMP) $(LOOPS)  ## install the tools for tests, checks and docs as well (3 min)

$(DEV_STAMP): $(STAMP) deploy/requirements-dev.lock
	@echo "Installing the tools for tests, checks and docs (1.5 min)"
	$(PIP) --require-hashes --no-compile -r deploy/requirements-dev.lock
	@touch $(DEV_STAMP)

# Interpreted loops replay 120,320 events in time, and nobody waits for the compiler.
demo: $(STAMP)  ## replay the MMLU-Pro top ten of the paper through the real path (30 s)
	$(if $(wildcard $(LOOPS)),,RANKWATCH_LOOPS=interpreted )$(BIN)/rankwatch demo

stack: dev  ## run docker-compose.yml without Docker: Kafka, Valkey, workers, readers, Prometheus, Alertmanager, demo data
	@$(BIN)/python -m tests.stack $(STACK)

##@ Check

test: dev  ## run lint, types, import contracts and the quick tests (5 min)
	@$(MAKE) --no-print-directory -j 3 lint types quick

quick: dev
	$(PYTEST) -n $(QUICK_JOBS) -m "not full"

check: test  ## run everything: make test, the docs build, the full tests and a minute of simulation (22 min)
	@$(MAKE) --no-print-directory -j 3 docs full simulate

full: dev
	$(PYTEST) -n $(FULL_JOBS) -m full

lint: dev  ## check style, import contracts and dependencies (10 s)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry . --config pyproject.toml

types: dev  ## check types with mypy --strict (1 min, then seconds)
	$(BIN)/mypy

# Full tests often wait for other processes: the simulation has the time that they leave.
simulate: dev  ## simulate faults for 60 s of processor time
	nice -n 10 $(BIN)/python -m tests.simulation --seconds 60 --seed $(or $(RANKWATCH_SEED),1000000)

docs: dev  ## measure the prose of each page, and build the site into site/; fail on a broken link or a budget (20 s)
	$(BIN)/python -m docs.generate.measure
	@if test -e mkdocs.yml; then $(BIN)/mkdocs build --strict --quiet; else echo "no mkdocs.yml: no site to build"; fi

format: dev  ## fix style where that is safe, and format (1 s)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

##@ Write generated files

schemas: dev  ## regenerate the JSON Schemas, dashboards and generated pages of docs (15 s)
	$(BIN)/python -m schemas.generate
	$(BIN)/python -m monitor.serve.metrics.catalogue_page
	$(BIN)/python -m deploy.grafana.dashboards
	$(BIN)/python -m deploy.prometheus.objectives
	$(BIN)/python -m docs.generate

lock: dev  ## resolve the dependencies again into deploy/*.lock (1 min)
	$(COMPILE) pyproject.toml --extra fast --group dev -o deploy/requirements-dev.lock
	# The tests run with the versions that ship.
	$(COMPILE) pyproject.toml --extra fast --constraint deploy/requirements-dev.lock -o deploy/requirements.lock
	printf 'hatchling>=1.27\neditables>=0.5' | $(COMPILE) - -o deploy/requirements-build.lock

pin:  ## write the digests of the images into docker-compose.yml (needs docker buildx)
	deploy/pin.sh

##@ Test at full size

faults: dev  ## inject every fault: kills, frozen processes, full disks, lost brokers and stores, hostile input (1 h)
	RANKWATCH_SLOW=1 $(BIN)/pytest -s tests/fault tests/security tests/fuzz tests/soak tests/contract tests/property tests/integration/test_service_*.py

model: dev  ## check every state of the commit protocol's model, and that it fails without each rule (4 min; needs Java and Maven)
	$(BIN)/python -m tests.model

fuzz: dev  ## fuzz everything that reads input, guided by coverage (1 min; needs the package atheris)
	$(BIN)/python -m tests.fuzz --seconds 60

soak: dev  ## stream steadily and watch memory, descriptors, keys and disk (10 min)
	$(BIN)/python -m tests.soak --minutes 10

bench: dev $(PEERS)/.installed  ## measure against peers and limits, into benchmarks/results and docs/explanation/benchmarks.md (3 h)
	$(BIN)/python -m benchmarks --peers $(PEERS)/bin/python

$(PEERS)/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

##@ Release

audit: dev  ## look up known vulnerabilities of the locked packages (needs an advisory service)
	$(BIN)/uvx pip-audit@2.10.1 --strict --require-hashes --disable-pip -r deploy/requirements.lock

sbom: dev  ## write the software bill of materials of the locked packages to sbom.json (CycloneDX)
	SOURCE_DATE_EPOCH=0 $(BIN)/uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/requirements.lock \
		--pyproject pyproject.toml --output-reproducible -o sbom.json

dist: dev  ## build the packages into dist/rankwatch and dist/client; install and run each in a new environment
	rm -rf dist/rankwatch dist/client
	$(BIN)/uv build --quiet --no-build-isolation --out-dir dist/rankwatch .
	$(BIN)/uv build --quiet --no-build-isolation --out-dir dist/client clients/python
	$(BIN)/python -m deploy.try_dist dist

notes: dev  ## check that TAG=vX.Y.Z is the version everywhere; write its changelog to dist/NOTES.md
	@mkdir -p dist
	$(BIN)/python -m deploy.release_notes "$(TAG)" > dist/NOTES.md && cat dist/NOTES.md

##@ Other

kafka: dev  ## run an Apache Kafka on port 9092 until Ctrl-C (needs Java and Maven)
	$(BIN)/python -m tests.kafka.broker --port 9092

clean:  ## remove environments, builds and caches
	rm -rf $(VENV) $(PEERS) .stack dist build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
