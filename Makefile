# Everything a checkout needs, with make and Python 3.11 or newer:
#
#   make demo        a worked example in the terminal
#   make test        the whole test suite, with coverage; it also needs npm, Java, chromium, Redis and PostgreSQL,
#                    which .ci/run installs where they are missing
#
# Another Python: make PYTHON=python3.13 test. Another place for the environment: make VENV=/tmp/venv test.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2

BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint types imports docs bench clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo: $(VENV)/.core  ## a worked example in the terminal
	$(BIN)/prudent demo

test: $(VENV)/.test $(VENV)/.browser  ## the whole test suite, with coverage
	$(BIN)/pytest -n $(JOBS) --cov --cov-fail-under=95

lint: $(VENV)/.lint  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint $(VENV)/.test  ## static types
	$(BIN)/mypy

imports: $(VENV)/.lint  ## no module imports one that comes after it
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## the site, into docs/_build
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env docs docs/_build
	@echo "The pages are in docs/_build; start at docs/_build/index.html"

bench: $(VENV)/.test  ## speed and memory, as ratios in one run (PART=clax, plain, sizes, pairs, spark, evaluate)
	$(BIN)/python -m benchmarks $(PART)

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist prudent-demo docs/_build docs/reference/generated .coverage .coverage.* .hypothesis \
	  .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per dependency group: installed once, and again only when pyproject.toml changes.

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  f"prudent needs Python 3.11 or newer, and $(PYTHON) is {sys.version.split()[0]}. Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# What looks over the report in a browser; the browser itself is the machine's, as `.ci/run` installs it.
$(VENV)/.browser: $(VENV)/.core
	npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4.14.0
	@touch $@

$(VENV)/.%: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@
