# Everything a fresh machine needs is Python 3.11 or later, pip and make. `make help` lists the rest.

PYTHON ?= python3
ARGS   ?=

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
PIP   := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help demo test test-quick check house bench sweep chaos soak fuzz mutants experiments docs browser lock
.PHONY: clean notebook
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile
	@echo
	@echo "PYTHON=/path/to/python3 chooses the interpreter, ARGS='...' is passed on."

demo: $(READY) ## real processes on this machine, one killed, judged with Spark
	@$(BIN)/ordercast demo --out out/demo $(ARGS)

# Live tests wait most of their time, so three workers keep two cores busy. Each group is one worker's:
# what shares a Spark session, what shares its servers, and what has networks of its own.
test: $(READY) ## the whole test suite, for a machine of two cores
	@$(BIN)/python -m pytest -n 3 --dist loadgroup -rs $(ARGS)

# The state machines, the wire format and the traces, without the long searches: together a minute of
# one processor. A folder belongs here if it needs no Spark and no sockets, and stays as short.
QUICK := agreement core errata machinery membership process protocols reliability trace views wire
SLOW  := membership/test_cluster_every_step.py trace/test_random_traces.py \
         views/test_explored.py views/test_wrong_machines.py

test-quick: $(READY) ## tests for your own change, under a minute: no Spark, no sockets, no long searches
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -rs $(QUICK:%=tests/%) \
	    $(SLOW:%=--ignore=tests/%) $(ARGS)

check: $(READY) ## format, lint, types, import contracts, depth of inheritance
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.inheritance

house: $(READY) ## what a newcomer meets in src/ordercast, measured
	@$(BIN)/python -m tools.house $(ARGS)
	@$(BIN)/python -m tools.way

bench: $(READY) ## speed on this machine, written as JSON
	@PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

sweep: $(READY) ## many simulated runs over many seeds, every trace judged
	@$(BIN)/python -m sweep $(ARGS)

chaos: $(READY) ## random faults on live clusters, judged from outside; bounded in time
	@$(BIN)/python -m chaos $(ARGS)

soak: $(READY) ## one live cluster for two hours, with restarts: does anything grow?
	@$(BIN)/python -m chaos.soak $(ARGS)

fuzz: $(READY) ## wrong packets and control messages for nodes in every state; bounded in time
	@$(BIN)/python -m fuzz $(ARGS)

mutants: $(READY) ## small wrong changes, on a copy of the checkout: does a test notice each?
	@$(BIN)/python -m tools.mutants $(ARGS)

experiments: $(READY) ## every claim of the sources measured, with figures; resumable
	@$(BIN)/python -m experiments $(ARGS)

docs: $(READY) ## write the pages that are made from the code
	@PYTHONPATH=. $(BIN)/python docs/build.py

notebook: $(READY) ## run the example notebook and keep what it shows
	@$(BIN)/python examples/notebook/run.py

# The tests of the report in a browser look for Chromium by these names, or at ORDERCAST_CHROMIUM.
BROWSERS := chromium chromium-browser google-chrome
SUDO     := $(if $(filter 0,$(shell id -u)),,sudo)

browser: ## Debian's Chromium for the tests of the report, if there is none; needs root or sudo
	@for name in "$$ORDERCAST_CHROMIUM" $(BROWSERS); do \
	    if [ -n "$$name" ] && command -v "$$name" >/dev/null; then \
	        echo "there is a browser already: $$(command -v "$$name")"; exit 0; fi; done; \
	command -v apt-get >/dev/null || { \
	    echo "no apt-get here: install Chromium yourself, or name one in ORDERCAST_CHROMIUM" >&2; \
	    exit 1; }; \
	echo "installing Chromium and two fonts with apt-get: about 100 MB to download" && \
	$(SUDO) apt-get update --quiet=2 && \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes \
	    --no-install-recommends chromium fonts-liberation fonts-dejavu-core

# Only `make lock` changes which versions are used. It records names and versions, never an address.
lock: ## pin the newest versions that pyproject.toml allows
	rm -rf .lock-venv
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/pip install '.[pipeline,dev]'
	.lock-venv/bin/pip freeze --exclude ordercast > .lock-venv/frozen
	@if grep -v '^[A-Za-z0-9._-]*==[A-Za-z0-9.+!]*$$' .lock-venv/frozen; then \
	    echo "not a plain name==version: nothing was changed" >&2; exit 1; fi
	{ sed -n '/^#/p' requirements.lock; cat .lock-venv/frozen; } > .lock-venv/requirements.lock
	mv .lock-venv/requirements.lock requirements.lock
	rm -rf .lock-venv

clean: ## remove caches and outputs; the environment .venv stays
	rm -rf build dist out spark-warehouse metastore_db derby.log .lock-venv
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made once, and again only when the lock or pyproject.toml changes, or when a
# PYTHON is named (in the command or the environment) that is of another version than the one in it.
MINOR := -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
ifneq ($(origin PYTHON),file)
ifneq ($(shell $(PYTHON) $(MINOR)),$(shell $(BIN)/python $(MINOR)))
$(READY): another-python
CLEAR := --clear
endif
endif

.PHONY: another-python
another-python:
	@if [ -e $(READY) ]; then echo "$(VENV) has another version of Python than $(PYTHON): it is set up again." >&2; fi

# Some systems split off the module ensurepip; there the system's own pip fills the environment.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "ordercast needs Python 3.11 or later; '$(PYTHON)' says: $$($(PYTHON) --version 2>&1)"; \
	    echo "name a newer one, for example: make $(MAKECMDGOALS) PYTHON=/usr/bin/python3.12"; \
	    exit 1; } >&2
	@echo "Setting up $(VENV), once: a few minutes, most of it for PySpark (about 450 MB)."
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	    $(PYTHON) -m venv $(CLEAR) $(VENV); \
	else \
	    $(PYTHON) -m venv $(CLEAR) --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; \
	fi
	@$(PIP) install --requirement requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@echo "Preparing Spark, once: it starts in half the time from then on."
	@$(BIN)/python -c "from ordercast.pipeline.spark.class_archive import main; main()" >/dev/null || true
	@touch $@
