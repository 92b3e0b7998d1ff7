# make demo      a real study on generated data, in about two minutes
# make test      tests of every kind, in some minutes: without those marked thorough, and with fewer random examples
# make test-all  every test, with all examples
# make test-processors  what trains, once more as other processors compute, and with two threads
# make check     lint, types, import contracts, and the limits of size
# make docs      the documentation as a site, in build/docs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# Compiled files are kept, whatever the machine says: tests start hundreds of processes, and pytest
# rewrites every assert. A file is compiled when it is first imported: pip would compile all of torch.
export PYTHONDONTWRITEBYTECODE :=
# Two parts, side by side. What computes takes as many processes as there are cores. What starts
# clusters, browsers and servers mostly waits: two files at a time (FILES=1 on a machine with little
# memory), in the order of their names, which has the longest (chaos) among the first; its output is
# shown at its end, and it gives up after a few failures, of which each may have waited for ten
# minutes. Each part names its folders, so that it need not import the other's tests.
COMPUTES := tests/unit tests/contract tests/sim tests/gpu tests/reference
STARTS := tests/browser tests/chaos tests/cluster tests/integration
SHARED_OUT := --numprocesses logical --maxprocesses 8 --dist worksteal
FILES := 2
BY_FILE := --dist loadfile --no-loadscope-reorder --numprocesses
PARTS := --no-print-directory --jobs 2 --keep-going computing starting
# Sums depend on a processor's vector instructions and on the number of threads. These tests have
# passed with those of this machine; here torch, oneDNN and MKL are held to AVX2, where the machine
# has more, and to the baseline.
TRAINS := $(addprefix tests/unit/trials/,adapters loop tasks)
COMPUTES_NOTHING := $(addprefix --ignore tests/unit/trials/tasks/,command datasets function tabular/test_remarks.py)
PROCESSORS := $(PYTEST) $(SHARED_OUT) --quick $(COMPUTES_NOTHING) $(TRAINS)
AVX2 := ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2
HAS_MORE_THAN_AVX2 := $(BIN)/python -c 'import torch; assert torch.backends.cpu.get_cpu_capability() != "AVX2"' 2>/dev/null
BASELINE := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE

.PHONY: demo test test-all computing starting test-processors check docs clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(MAKE) $(PARTS) EXTENT=--quick

test-all: $(READY)
	$(MAKE) $(PARTS) EXTENT=

computing:
	$(PYTEST) $(SHARED_OUT) $(EXTENT) $(COMPUTES)

starting:
	mkdir -p build
	status=0; $(PYTEST) $(BY_FILE) $(FILES) --maxfail 4 $(EXTENT) $(STARTS) >build/starting.log 2>&1 || status=1; \
	cat build/starting.log; exit $$status

test-processors: $(READY)
	status=0; if $(HAS_MORE_THAN_AVX2); then $(AVX2) OMP_NUM_THREADS=1 $(PROCESSORS) || status=1; fi; \
	$(BASELINE) OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(PROCESSORS) || status=1; exit $$status

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/density.py

docs: $(READY)
	$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/docs

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hpsearch needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build demo
