# Everything a person does with this checkout. `make` alone says what there is.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ENV := $(VENV)/.made
# The versions to install, with hashes. `make env LOCKED=` takes the newest that pyproject.toml allows.
LOCKED ?= requirements/dev.txt

.DEFAULT_GOAL := help
.PHONY: help env lock demo docs test test-core test-all check format bench crash sim clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

env: $(ENV) ## make .venv: the package and the tools for development and tests, nothing else

# uv is several times as quick as pip. Where it has no wheel, or cannot reach what pip is set up to
# reach, pip does the same.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
UV := $(BIN)/uv --quiet --system-certs
WHAT := $(if $(LOCKED),--require-hashes -r $(LOCKED),--editable '.[dev]')
ITSELF := --no-deps --no-build-isolation --editable .

$(ENV): pyproject.toml $(LOCKED)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tocsin needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "This Python has no venv module. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing into $(VENV) (half a minute the first time)" >&2
	@$(PIP) install --only-binary :all: --require-hashes -r requirements/uv.txt \
	  && $(UV) pip install --python $(BIN)/python $(WHAT) \
	  || { echo "without uv, pip takes a minute or two" >&2; $(PIP) install $(WHAT); }
	@$(if $(LOCKED),$(PIP) install $(ITSELF))
	@touch $(ENV)

lock: ## renew requirements/*.txt: the newest versions that pyproject.toml allows, with hashes
	@$(MAKE) --no-print-directory env
	@$(UV) pip compile $(LOCK) requirements/uv.in -o requirements/uv.txt
	@$(UV) pip compile $(LOCK) pyproject.toml requirements/tools.in --extra dev -o requirements/dev.txt
	@$(UV) pip compile $(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/run.txt
	@$(UV) pip compile $(LOCK) requirements/docs.in -o requirements/docs.txt
LOCK := --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header

# The tool of the site has an environment of its own: nothing else needs it, and it needs nothing else.
SITE := .venv-docs
docs: $(SITE)/.made ## the documentation as a site, in out/site
	@$(SITE)/bin/zensical build --clean
	@echo "open out/site/index.html" >&2

$(SITE)/.made: requirements/docs.txt
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip --quiet --disable-pip-version-check install --only-binary :all: --require-hashes -r requirements/docs.txt
	@touch $@

demo: $(ENV) ## publishers, subscribers, a crash in the middle, nothing lost (STAY=1 keeps it running)
	@$(BIN)/tocsin demo $(if $(STAY),--keep)

# Tests wait mostly for something else: Java, a command, a clock. Three processes fit two cores: one for
# the pipeline, which starts Spark once and gives way since the others go by the clock, and two that
# take the other files as they become free. The checks run beside them.
CODE := src tests bench examples
CHECKS := $(BIN)/ruff check $(CODE) && $(BIN)/ruff format --check --quiet $(CODE) && $(BIN)/mypy \
  && PYTHONPATH=src $(BIN)/lint-imports --no-cache
PYTEST := $(BIN)/python -m pytest -m 'not slow' --durations 20
BY_FILE := --numprocesses 2 --dist loadfile
test: $(ENV) ## what CI runs: checks and all tests but the long ones
	@mkdir -p out; { $(CHECKS); } >out/check.log 2>&1 & checks=$$!; \
	nice -n 5 $(PYTEST) tests/pipeline >out/test-pipeline.log 2>&1 & pipeline=$$!; \
	$(PYTEST) $(BY_FILE) --ignore=tests/pipeline; failed=$$?; \
	for each in $$checks $$pipeline; do wait $$each || failed=1; done; \
	cat out/test-pipeline.log out/check.log; exit $$failed

# What everything else stands on, in a few minutes: for a second Python, or before a commit.
CORE := $(addprefix tests/,test_architecture.py test_config.py test_docs.py test_errors.py test_safexml.py docs event matching store broker wire)
test-core: $(ENV) ## the tests of the core alone, without the checks
	@$(PYTEST) $(BY_FILE) $(CORE)

test-all: check ## also the long proofs: 1,000 kills, 10,000 seeds
	@$(BIN)/python -m pytest
	@$(MAKE) --no-print-directory crash sim

check: $(ENV) ## ruff, mypy --strict and the import contracts
	@$(CHECKS)

format: $(ENV) ## let ruff mend what it can
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

bench: $(ENV) ## every benchmark beside its peer; tables, JSON and plots in out/ (QUICK=1 for a short one)
	@$(BIN)/python bench/all.py $(if $(QUICK),--quick)

crash: $(ENV) ## 1,000 times kill -9 under load at every endpoint: nothing acknowledged may be lost
	@$(BIN)/python tests/crash/kills.py --kills $(or $(KILLS),1000)

sim: $(ENV) ## 10,000 simulated worlds of brokers, one seed each
	@$(BIN)/tocsin simulate --seeds $(or $(SEEDS),10000)

clean: ## remove what was built and measured; the environment stays
	@rm -rf out dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
