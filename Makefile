# make demo      a real study on generated data, in about two minutes
# make test      tests of every kind, in some minutes: without those marked thorough, and with fewer random examples
# make test-all  every test, with all examples
# make check     lint, types, import contracts
# make docs      the documentation as a site, in build/docs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# What computes runs in as many processes as there are cores. What starts clusters, browsers and
# servers waits for other processes most of the time, and its patience is measured in seconds: two
# files of it run at a time, wherever that is, and no more. They begin in the order of their names,
# which has the longest one (chaos) among the first: otherwise it would run alone in the end.
STARTS := integration or chaos or browser
COMPUTES := not ($(STARTS))
COMPUTING := $(PYTEST) --numprocesses logical --maxprocesses 8 --dist worksteal -m "$(COMPUTES)"
STARTING := $(PYTEST) --numprocesses 2 --dist loadfile --no-loadscope-reorder -m "$(STARTS)"

.PHONY: demo test test-all check docs clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	status=0; $(COMPUTING) --quick || status=1; $(STARTING) --quick || status=1; exit $$status

test-all: $(READY)
	status=0; $(COMPUTING) || status=1; $(STARTING) || status=1; exit $$status

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/docs

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hpsearch needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build demo
