# `make tune` runs the main job on the sample that ships; `make test` passes the tests. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
LOWEST := $(or $(TMPDIR),/tmp)/qconf-lowest
AT_LOWEST := NUMBA_CACHE_DIR=$(LOWEST)/kernels

.PHONY: tune test test-all lowest lint counts bench study paper example reference dist lock clean

tune: $(VENV)/ready
	$(BIN)/qconf tune

test: $(VENV)/ready
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-all: $(VENV)/ready  # long studies too, and all of the tests on real servers and in a browser
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

lowest: $(VENV)/ready  # the lowest versions of all dependencies: a tune of the sample, golden starts, logs and exports
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable . "pytest>=8" "hypothesis>=6.100"
	$(AT_LOWEST) $(LOWEST)/bin/qconf tune --quiet --samples 20 --out $(LOWEST)/report
	$(AT_LOWEST) $(LOWEST)/bin/python -m pytest -q -p no:xdist $(addprefix tests/, \
	    "test_golden.py::test_no_start_has_moved[easy]" "test_golden.py::test_no_start_has_moved[shared-all]" \
	    $(addprefix qconf/, test_config.py history/test_csv.py history/test_sacct.py history/test_swf.py \
	    export/slurm/test_init.py export/pbs/test_tiers.py))

lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

counts: $(VENV)/ready  # of what is read at a visit to a deep queue, beside those that are stored
	$(BIN)/python -m tests.benchmarks.deep --counts

bench: $(VENV)/ready
	$(BIN)/python -m tests.benchmarks.speed

study: $(VENV)/ready  # writes docs/research/study.md in about half an hour; make study QUICK=1 in minutes
	$(BIN)/python -m studies.paper $(if $(QUICK),--quick) --workers $(WORKERS)

paper: $(VENV)/ready  # writes docs/research/paper.md in about an hour; make paper QUICK=1 in minutes
	$(BIN)/python -m studies.letter $(if $(QUICK),--quick) --workers $(WORKERS)

example: $(VENV)/ready  # reports/example, the report of the sample, and the pictures of it; needs Debian's chromium
	$(BIN)/qconf tune --quiet --out reports/example
	rm reports/example/timings.json  # never the same
	$(BIN)/python -m tests.browser.pictures

reference: $(VENV)/ready  # docs/reference/commands.md, from the help of the commands
	$(BIN)/python -m tests.reference

dist: $(VENV)/ready  # dist/: the sdist, and the wheel made of it
	$(BIN)/python -m build --no-isolation

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

lock: $(VENV)/ready  # pins every dependency, for every Python from 3.11 on, with hashes
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --custom-compile-command "make lock" -o requirements.lock

clean:
	rm -rf $(VENV) dist
	find parsim qconf -name '*.nb[ic]' -delete  # compiled kernels: numba does not see changes in what it inlined
