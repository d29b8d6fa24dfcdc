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

# The tests with the newest packages that there are, by the newest Python: `make newest NEWEST=python3.14`.
NEWEST ?= $(shell for v in 16 15 14 13 12 11; do command -v python3.$$v && break; done)
newest: .venv-newest/.ready
	.venv-newest/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

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

# Try to break everything: about an hour, or two minutes. Figures go into docs/tried.md.
soak: $(VENV)/.dev
	$(BIN)/python soak/run.py --page

soak-quick: $(VENV)/.dev
	$(BIN)/python soak/run.py --quick

# Functions drawn from each model's own prior, and how often its intervals hold them.
calibration: $(VENV)/.dev
	$(BIN)/python soak/run.py --calibrate --page

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

.venv-newest/.ready: pyproject.toml
	$(NEWEST) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip --disable-pip-version-check install --quiet --upgrade \
		--editable '.[dev,geo,io,mcmc,report,scale,sklearn]'
	@touch $@

.venv-oracles/.ready: pyproject.toml tests/oracles/constraints.txt
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint tests/oracles/constraints.txt --editable '.[oracles]'
	@touch $@
