# Everything a person types. Needs Python 3.11 or newer, pip and make; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help test slow check coverage docs notebooks bench audit mutants horizon rewards soak reproduce lock clean
.DEFAULT_GOAL := help

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed, this is {v.major}.{v.minor}. Try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

test: $(READY) ## set up, then run every test
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  echo "No Chromium: the tests of the dashboard are skipped. To run them, install it (Debian: apt-get install chromium)."
	$(BIN)/python -m pytest -n auto --dist worksteal -m "$(or $(MARKERS),not slow)"

slow: $(READY) ## the long forms of the tests, some minutes more
	$(BIN)/python -m pytest -n auto --dist worksteal -m "$(or $(MARKERS),slow)"

check: $(READY) ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## build the documentation site into docs/_build/site, without a network, and check its links
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs docs/_build/site
	$(BIN)/python docs/check_site.py docs/_build/site

notebooks: $(READY) ## run the tutorials' notebooks anew and store their outputs, about a minute
	$(BIN)/python docs/notebooks.py

coverage: $(READY) ## which lines the tests run; compiled rules are not counted (make mutants checks those)
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term --cov-report=html:out/coverage

bench: $(READY) ## print how fast it is on this machine
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-sort=name --benchmark-columns=min,median,stddev,rounds
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/one_decision.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/peers.py

audit: $(READY) ## compare the package with independent implementations, and measure the coverage of intervals, about two hours
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/replay_coverage.py
	$(BIN)/python -m benchmarks.coverage

mutants: $(READY) ## break the rules one by one and see the tests notice
	$(BIN)/python tests/mutants.py

horizon: $(READY) ## evidence for the horizon-aware rule, some ten minutes
	$(BIN)/python -W ignore benchmarks/horizon.py

rewards: $(READY) ## other rewards, and what the prior does, some minutes
	$(BIN)/python benchmarks/rewards.py

soak: $(READY) ## crowds, races, kills and full disks against both stores, then the service under load, about an hour
	$(BIN)/python -W ignore -m benchmarks.soak
	$(BIN)/python -W ignore -m benchmarks.load

reproduce: $(READY) ## the paper in one command: six figures and a report, about ten minutes
	$(BIN)/doublesampling reproduce --resume

lock: $(READY) ## resolve the requirements anew
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header \
	  --no-annotate --allow-unsafe --extra dev --output-file requirements.lock pyproject.toml

clean: ## remove what make built
	rm -rf $(VENV) out docs/_build .mypy_cache .ruff_cache .hypothesis .benchmarks
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
