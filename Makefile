# `make demo` and `make test` need Python >= 3.11, make and a package index; they make everything else themselves.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
PEERS := .venv-peers
JOBS ?= auto

.PHONY: help install dev demo test lint types test-all lock schemas pin faults fuzz soak audit sbom bench kafka clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make the virtual environment .venv with what rankwatch needs to run

$(STAMP): pyproject.toml deploy/requirements.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: none was found on PATH (set PYTHON=/path/to/python)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r deploy/requirements.lock -r deploy/requirements-build.lock
	$(PIP) --no-build-isolation --editable .
	$(BIN)/python -m compileall -q monitor schemas stats
	@touch $(STAMP)

dev: $(DEV_STAMP)  ## the same, and what the tests and checks need

$(DEV_STAMP): $(STAMP) deploy/requirements-dev.lock
	$(PIP) --require-hashes --no-compile -r deploy/requirements-dev.lock
	@touch $(DEV_STAMP)

demo: install  ## replay the paper's MMLU-Pro top ten through the real path (about 20 s)
	$(BIN)/rankwatch demo

test: dev lint types  ## lint, types, architecture, tests
	$(BIN)/pytest -n $(JOBS) --dist worksteal -q

test-all: dev lint types  ## as test, with every simulation at full size (an hour or so)
	RANKWATCH_SLOW=1 $(BIN)/pytest -n $(JOBS) --dist worksteal -q

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry . --config pyproject.toml

types: dev
	$(BIN)/mypy

schemas: dev  ## write the generated files again: JSON Schemas, the metrics page, the dashboards
	$(BIN)/python -m schemas.generate
	$(BIN)/python -m monitor.serve.metrics.catalogue_page
	$(BIN)/python -m deploy.grafana.dashboards

lock: dev  ## resolve the dependencies anew into deploy/*.lock
	$(COMPILE) pyproject.toml --group dev -o deploy/requirements-dev.lock
	# What is tested is what is shipped.
	$(COMPILE) pyproject.toml --constraint deploy/requirements-dev.lock -o deploy/requirements.lock
	printf 'hatchling>=1.27\neditables>=0.5' | $(COMPILE) - -o deploy/requirements-build.lock

pin:  ## put the digests of the images into docker-compose.yml (needs docker buildx)
	deploy/pin.sh

faults: dev  ## every fault at full size: kills, frozen processes, full disks, brokers and stores that go away, hostile input (an hour or so)
	RANKWATCH_SLOW=1 $(BIN)/pytest -s tests/fault tests/security tests/fuzz tests/soak tests/contract tests/property tests/integration/test_service_*.py

fuzz: dev  ## coverage-guided fuzzing of everything that is read, a minute (needs the package atheris)
	$(BIN)/python -m tests.fuzz --seconds 60

soak: dev  ## ten minutes of a steady stream: memory, descriptors, keys, disk
	$(BIN)/python -m tests.soak --minutes 10

audit: dev  ## known vulnerabilities of what is locked (needs an advisory service, and fails where a package cannot be looked up)
	$(BIN)/uvx pip-audit@2.10.1 --strict --require-hashes --disable-pip -r deploy/requirements.lock

sbom: dev  ## the software bill of materials of what is locked, into sbom.json (CycloneDX)
	SOURCE_DATE_EPOCH=0 $(BIN)/uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/requirements.lock \
		--pyproject pyproject.toml --output-reproducible -o sbom.json

bench: dev $(PEERS)/.installed  ## measure beside peers and limits (an hour or so); results in benchmarks/results and docs/explanation/benchmarks.md
	$(BIN)/python -m benchmarks --peers $(PEERS)/bin/python

$(PEERS)/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

kafka: dev  ## run an Apache Kafka on port 9092 until Ctrl-C (needs Java and Maven)
	$(BIN)/python -m tests.kafka.broker --port 9092

dist: dev  ## build the packages: dist/rankwatch and dist/client
	rm -rf dist/rankwatch dist/client
	$(BIN)/uv build --quiet --no-build-isolation --out-dir dist/rankwatch .
	$(BIN)/uv build --quiet --no-build-isolation --out-dir dist/client clients/python

notes: dev  ## check that TAG=vX.Y.Z is the version everywhere; write its changelog section to dist/NOTES.md
	@mkdir -p dist
	$(BIN)/python -m deploy.release_notes "$(TAG)" > dist/NOTES.md && cat dist/NOTES.md

clean:
	rm -rf $(VENV) $(PEERS) dist build .pytest_cache .mypy_cache .ruff_cache
