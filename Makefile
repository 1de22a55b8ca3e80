# Every command a contributor needs. `make` alone lists them.

PYTHON  ?= python3
# Four on two cores: much of a test is waiting, for a commit or for another process. Of three,
# all were waiting at times; the fourth costs 9 s of CPU, to collect the tests.
WORKERS ?= 4
ARGS    ?=

# Hundreds of processes are started by the tests: each would compile Windrow anew, and each of the
# tests' own would rewrite their assertions.
unexport PYTHONDONTWRITEBYTECODE

BIN   := .venv/bin
STAMP := .venv/.installed

# The rules of the code that are themselves tests: fast, and need no database server.
RULES := $(wildcard tests/test_layers.py tests/test_public_api.py tests/test_statements.py tests/test_docs.py tests/test_docs_code.py tests/reference/test_reference.py \
           tests/test_licences.py tests/size/test_ratchet.py tests/size/test_ways.py)

.DEFAULT_GOAL := help
.PHONY: help setup check fix test size chaos demo bench serve schema docs clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## Create .venv with Windrow and its tools (again only when the pins change)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Windrow needs Python 3.11 or newer: make setup PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv .venv \
		|| { echo "Could not create .venv. Where Python comes without ensurepip, install it first" \
		          "(Debian, Ubuntu: apt install python3-venv), or name another: make setup PYTHON=..." >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps bullmq semver
	@touch $@

check: $(STAMP) ## Format, lint, types, the layer rules, and the licences of what is needed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(if $(RULES),$(BIN)/pytest $(RULES))

fix: $(STAMP) ## Format the code and apply the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(STAMP) ## Run the tests (ARGS='-k lease' picks some, WORKERS=8 uses more cores)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not chaos' $(ARGS)

size: $(STAMP) ## Print the figures of the house, their ratchets and bounds (ARGS=--tighten lowers ratchets)
	@$(BIN)/python -m tests.size $(ARGS)

PEERS := .venv/.peers

$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps bullmq
	@touch $@

FIGURES := tests/trust/figures
TRUST   := tests/trust tests/api/test_auth.py tests/api/test_schema.py

# No test begins after so many seconds of its part; each has a limit of its own.
BOUNDED := --session-timeout=7200

# The tests of trust run one by one, the short ones too: they measure how long things take to recover.
chaos: $(PEERS) ## Run the tests that take long, and write docs/guarantees.md from what they saw
	WINDROW_SCORECARD=$(FIGURES) $(BIN)/pytest $(BOUNDED) $(TRUST) -k 'not the_page_in_the_docs' $(ARGS)
	$(BIN)/python -m tests.trust.scorecard $(FIGURES)
	$(BIN)/pytest $(BOUNDED) -n $(WORKERS) --dist worksteal -m chaos $(addprefix --ignore=,$(TRUST)) $(ARGS)
	$(BIN)/pytest $(BOUNDED) -n $(WORKERS) --dist worksteal tests/conformance tests/calls/test_stages.py --store=pgbouncer,bullmq,beside $(ARGS)
	WINDROW_TEST_MORE=12 $(BIN)/pytest $(BOUNDED) -n $(WORKERS) tests/conformance -k any_sequence --timeout=1800 $(ARGS)

# What the demo needs, without the tools: less than half of the time that `make setup` takes.
DEMO := .venv/.demo

$(DEMO): pyproject.toml constraints.txt
	@test -e $(STAMP) || $(PYTHON) -m venv .venv
	@test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server,knowledge]'
	@touch $@

demo: $(DEMO) ## Show Windrow at work (ARGS=--keep leaves it running)
	$(BIN)/windrow demo $(ARGS)

bench: $(PEERS) ## Measure beside the floor and the peers (ARGS='--no-peers --rounds 1' is shorter)
	$(BIN)/python -m bench $(ARGS)
	$(BIN)/python -m bench.api
	$(BIN)/python -m bench.quality

serve: $(STAMP) ## Run the server, with a worker in it
	$(BIN)/windrow serve

schema: $(STAMP) ## Rewrite the schema.sql snapshots from the migrations
	$(BIN)/python -m tests.refresh_schema

docs: $(STAMP) ## Write the reference from the code, then build the site into build/site
	$(BIN)/python -m tests.reference
	$(BIN)/python -m tests.reference.site

clean: ## Remove .venv, caches and build output
	rm -rf .venv .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
