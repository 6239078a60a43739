# Two commands for a stranger: `make run` and `make test`. Each brings what it needs.
SHELL := /bin/sh
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
RUN := $(UV) run --frozen --no-sync
export UV_PYTHON_DOWNLOADS := never
export UV_LINK_MODE := copy
# samples and benchmark data, when there is a folder of them beside the checkout
export RECOLLECT_DATA ?= $(wildcard $(CURDIR)/../shared)

.PHONY: run demo test lint types unit bench soak setup clean generate neo4j neo4j-jars

# the tour, and then the same memory over HTTP until it is stopped
run: setup
	.venv/bin/recollect demo --serve

demo: setup
	.venv/bin/recollect demo

test: setup lint types unit

lint: setup
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: setup
	$(RUN) basedpyright

unit: setup neo4j-jars
	$(RUN) pytest -n 2

# a real Neo4j server for the tests: Java and Maven are installed where that is allowed, the jars come from Maven
neo4j-jars: setup
	$(RUN) python tools/neo4j_server.py fetch

# a Neo4j server for a developer, until it is interrupted
neo4j: setup
	$(RUN) python tools/neo4j_server.py run

bench: setup neo4j-jars
	UV_PROJECT_ENVIRONMENT=build/installed $(UV) sync --frozen --quiet --no-dev --no-editable --compile-bytecode
	$(RUN) python bench/run.py

soak: setup neo4j-jars
	RECOLLECT_SOAK=1 $(RUN) pytest -n 2 tests/fault tests/property tests/security

generate: setup
	$(RUN) python tools/generate.py

setup: .venv/.ready

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --quiet
	@touch $@

.uv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Recollect needs Python 3.11 or newer: install it, or name it with PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .uv || { echo "this Python cannot make virtual environments: install its venv package (Debian: apt-get install python3-venv)"; exit 1; }
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8'

clean:
	rm -rf .venv .uv build .pytest_cache .ruff_cache .hypothesis
