# Everything a checkout needs, with make and Python 3.11 or newer:
#
#   make demo        a worked example in the terminal
#   make quick       the tests that need Python packages alone
#   make test        every test. Java, chromium, Redis, PostgreSQL, npm and g++ are installed by apt as root or with sudo;
#                    where that is not possible, the last lines name what was not run and how to get it
#
# Another Python: make PYTHON=python3.13 test. Another place for the environment: make VENV=/tmp/venv test.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2

BIN := $(VENV)/bin

# Tests start hundreds of processes, and each starts 0.1 s sooner with bytecode, also where the environment has none.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo quick test fuzz lint types imports lock audit pages docs bench clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo: $(VENV)/.kernel  ## a worked example in the terminal
	$(BIN)/prudent demo

quick: $(VENV)/.test $(VENV)/.kernel  ## the tests that need Python packages alone
	$(BIN)/pytest -n $(JOBS)

# Coverage is for CI: it takes a third more time, and means something only where no test is left out.
test: $(VENV)/.test $(VENV)/.kernel  ## every test; installs the programs they need, where it may
	$(BIN)/python tests/programs.py install
	$(BIN)/pytest -n $(JOBS) --all $(if $(CI),--cov --cov-fail-under=95)

fuzz: $(VENV)/.test  ## damaged and hostile files for every reader, for SECONDS=600
	$(BIN)/python -m tests.fuzz $(or $(SECONDS),600) $(SEED)

lint: $(VENV)/.lint  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint $(VENV)/.test  ## static types
	$(BIN)/mypy

imports: $(VENV)/.test  ## no package imports one above it
	$(BIN)/lint-imports

lock: $(VENV)/.core  ## write down the versions of packages that CI installs
	$(BIN)/python .ci/packages.py lock

audit: $(VENV)/.core  ## ask osv.dev whether any of them is known to be vulnerable
	$(BIN)/python .ci/packages.py audit

pages: $(VENV)/.test  ## run every example of the pages and the notebook, and write down what they print
	$(BIN)/python docs/refresh.py

docs: $(VENV)/.docs $(VENV)/.test  ## check the examples of the pages, then build the site into docs/_build
	$(BIN)/python docs/refresh.py --check
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env docs docs/_build
	$(BIN)/pytest --quiet tests/docs/test_site.py
	@echo "The pages are in docs/_build; start at docs/_build/index.html"

bench: $(VENV)/.test $(VENV)/.kernel  ## speed and memory, as ratios in one run (PART=tail, head, sizes, pairs, clax, models, spark ...)
	$(BIN)/python -m benchmarks $(PART)

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist prudent-demo docs/_build docs/reference/generated .coverage .coverage.* .hypothesis \
	  .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per dependency group: installed once, and again only when pyproject.toml changes.

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  f"prudent needs Python 3.11 or newer, and $(PYTHON) is {sys.version.split()[0]}. Try: make PYTHON=python3.12")'
	@$(PYTHON) tests/programs.py venv
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# pip compiles the kernel too, and says nothing where it cannot; and its source changes without pyproject.toml.
$(VENV)/.kernel: $(VENV)/.core $(wildcard src/prudent/engines/kernel/*.h src/prudent/engines/kernel/*.cpp)
	@$(BIN)/python -m prudent.engines.kernel || true
	@touch $@

$(VENV)/.%: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@
