# `make demo` and `make test` need Python >= 3.11, make and a package index; they make everything else themselves.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= auto

.PHONY: help install demo test lint types test-all lock schemas kafka clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make the virtual environment .venv with everything in it

$(STAMP): pyproject.toml deploy/requirements-dev.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: none was found on PATH (set PYTHON=/path/to/python)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r deploy/requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: install  ## replay the paper's MMLU-Pro top ten through the real path (about 20 s)
	$(BIN)/rankwatch demo

test: install lint types  ## lint, types, architecture, tests
	$(BIN)/pytest -n $(JOBS) -q

test-all: install lint types  ## as test, with every simulation at full size (an hour or so)
	RANKWATCH_SLOW=1 $(BIN)/pytest -n $(JOBS) -q

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry . --config pyproject.toml

types: install
	$(BIN)/mypy

schemas: install  ## write the generated files again (JSON Schema)
	$(BIN)/python -m schemas.generate

lock: install  ## resolve the dependencies anew into deploy/*.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o deploy/requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -o deploy/requirements-dev.lock

kafka: install  ## run an Apache Kafka on port 9092 until Ctrl-C (needs Java and Maven)
	$(BIN)/python -m tests.kafka.broker --port 9092

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
