# Every target sets itself up in .venv; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
INPUTS := Makefile pyproject.toml constraints.txt

# OpenBLAS threads spin while JAX works and slow it down many times over.
export OPENBLAS_NUM_THREADS := 1
ifneq ($(wildcard ../shared/data),)
export MRGP_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-all slow oracles lint format docs tutorials notebooks bench soak soak-quick calibration \
	newest clean

demo: $(VENV)/.runtime
	$(BIN)/mrgp demo

# Workers take tests from one another; what took longest is told at the end.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --durations 40

test: $(VENV)/.dev
	$(PYTEST)

# The tests of `make test`, and then those that repeat them: by other seeds, sizes and settings, by
# the examples in docstrings, by tutorials and quick experiments.
test-all: test
	$(PYTEST) -m thorough tests src

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow

oracles: .venv-oracles/.ready
	.venv-oracles/bin/python -m pytest tests/oracles -c tests/oracles/pytest.ini

# The tests with the newest packages that there are, by the newest Python that runs:
# `make newest NEWEST=/path/to/python3.14`, and some of them by `TESTS="-x tests/gp"`.
NEWEST ?= $(shell for v in 20 19 18 17 16 15 14 13 12; do \
	for python in python3.$$v $(HOME)/.pyenv/versions/3.$$v.*/bin/python3; do \
	if $$python -c '' 2>/dev/null; then echo $$python; exit; fi; done; done)
TESTS ?= --numprocesses auto --maxprocesses 4 --dist worksteal
newest: .venv-newest/.ready
	.venv-newest/bin/python -m pytest $(TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Run the tutorials in full, and keep what their pages show: pictures, figures, printed text.
TUTORIALS := $(basename $(notdir $(filter-out examples/_%,$(wildcard examples/*.py))))
tutorials: $(VENV)/.dev
	set -e; for name in $(TUTORIALS); do \
		$(BIN)/python examples/$$name.py --out docs/images/tutorials \
			> docs/tutorials/printed/$$name.txt; done

# Each tutorial as a notebook, in notebooks/.
notebooks: $(VENV)/.runtime
	$(BIN)/python examples/_notebooks.py notebooks

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Try to break everything: about an hour, or minutes. Figures go into docs/tried.md. In parts:
# `soak/run.py --only readers,kills`, and once all have run, `soak/run.py --page`.
soak: $(VENV)/.dev
	$(BIN)/python soak/run.py --anew --page

soak-quick: $(VENV)/.dev
	$(BIN)/python soak/run.py --quick

# Functions drawn from each model's own prior, and how often its intervals hold them.
calibration: $(VENV)/.dev
	$(BIN)/python soak/run.py --calibrate --anew --page

clean:
	rm -rf $(VENV) .venv-oracles .venv-newest site mrgp-demo tutorial-output

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python $(INPUTS)
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) --editable '.[dev,docs,geo,io,mcmc,report,scale,sklearn]'
	@touch $@

$(VENV)/.docs: $(VENV)/.runtime
	$(PIP) --editable '.[docs]'
	@touch $@

.venv-newest/.ready: $(INPUTS)
	@test -n "$(NEWEST)" || { echo "No Python newer than the oldest, 3.11, runs here: NEWEST=..."; exit 1; }
	$(NEWEST) -c 'import sys; assert sys.version_info >= (3, 12), sys.version'
	$(NEWEST) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip --disable-pip-version-check install --quiet --upgrade \
		--editable '.[dev,geo,io,mcmc,report,scale,sklearn]'
	@touch $@

.venv-oracles/.ready: pyproject.toml tests/oracles/constraints.txt
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint tests/oracles/constraints.txt --editable '.[oracles]'
	@touch $@
