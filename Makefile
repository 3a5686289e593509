# Every target sets up what it needs in $(VENV); nothing but Python 3.11+ and make is assumed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TORCH  ?= requirements/torch.txt
BENCH_READY := $(VENV)/.bench-ready
DOCS_READY := $(VENV)/.docs-ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage dist smoke docs claims lint format bench-bqp bench-bqp-growth bench-bqp-quality bench-cuts bench-encode bench-metrics bench-hashers bench-search bench-models bench-frontier bench-promises fuzz mutants lock clean

help:            ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

$(READY): pyproject.toml requirements/dev.lock requirements/torch.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hashlearn needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/dev.lock
	$(if $(TORCH),$(PIP) -r $(TORCH))
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(BENCH_READY): $(READY) requirements/bench.lock
	$(PIP) --require-hashes -r requirements/bench.lock
	@touch $@

$(DOCS_READY): $(READY) requirements/docs.lock
	$(PIP) --require-hashes -r requirements/docs.lock
	@touch $@

setup: $(READY)  ## Make the virtual environment from the pinned lock

demo: $(READY)   ## Learn, search and score codes for handwritten digits; writes a page to look at
	$(BIN)/hashlearn demo

test: $(READY)   ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

TESTS ?=
coverage: $(READY) ## Lines and branches that no test runs; TESTS="tests/bits tests/metrics" runs a part
	$(BIN)/python -m pytest --cov --cov-report=term --cov-report=html $(TESTS)

dist: $(READY)   ## Build the wheel and the source archive into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build

# The wheel goes into an empty environment with its own dependencies only, at the versions of the lock.
SMOKE := build/smoke
smoke: dist      ## Install the wheel into a clean environment and try it
	$(BIN)/python -m venv --clear $(SMOKE)
	sed -nE 's/^([^ #]+==[^\\]*[^\\ ]) *\\?$$/\1/p' requirements/dev.lock > $(SMOKE)/constraints.txt
	$(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(SMOKE)/constraints.txt dist/*.whl
	$(SMOKE)/bin/python -I tests/smoke.py

lint: $(READY)   ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

SITE ?=
docs: $(DOCS_READY) ## Build the site into docs/_build/html; a broken link or a name without a page is an error
	$(BIN)/python -m sphinx -b html $(SITE) --quiet --fail-on-warning --keep-going docs docs/_build/html

bench-bqp: $(BENCH_READY)         ## One MNIST bit: hashlearn against interior-point solvers and pymanopt
	$(BIN)/python -m benchmarks.bqp.race

bench-bqp-growth: $(BENCH_READY)  ## One bit at n = 10^4, 10^5, 10^6: seconds, exponent, memory
	$(BIN)/python -m benchmarks.bqp.growth

bench-bqp-quality: $(BENCH_READY) ## Final value against the SDP bound, every solver on six instances
	$(BIN)/python -m benchmarks.bqp.quality

bench-cuts: $(BENCH_READY)        ## Max-cut under a time limit: auto, local search against its peers, proofs of optimality
	$(BIN)/python -m benchmarks.bqp.auto_table
	$(BIN)/python -m benchmarks.bqp.cut_race --seconds 10 --seeds 1
	$(BIN)/python -m benchmarks.bqp.proofs

bench-encode: $(READY)            ## Fit and encode 32 bits: all at once against one SVC for each bit
	$(BIN)/python -m benchmarks.hash_function_speed --peer-repeats 1 --repeats 1

bench-metrics: $(READY)           ## mAP and precision within a radius: counting against an argsort for each query
	$(BIN)/python -m benchmarks.metrics_speed

bench-hashers: $(READY)           ## Fit and encode seconds of every hasher, 5,000 and 60,000 rows
	$(BIN)/python -m benchmarks.hasher_speed

bench-search: $(READY)            ## Engines and stores on 100,000 codes
	$(BIN)/python -m benchmarks.search_engines

bench-models: $(READY)            ## Load a 100 MB model file against reading it
	$(BIN)/python -m benchmarks.model_files

bench-frontier: $(READY)          ## Recall of float neighbors against bytes: ours and those of FAISS, on the digits
	$(BIN)/python -m benchmarks.frontier measure

bench-promises: $(READY)          ## How often promises about recall are broken, and how many candidates they cost
	$(BIN)/python -m benchmarks.promises validity --ranks results/promise-ranks
	$(BIN)/python -m benchmarks.promises untested --ranks results/promise-ranks
	$(BIN)/python -m benchmarks.promises tightness --ranks results/promise-ranks
	$(BIN)/python -m benchmarks.promises families

claims: $(READY)                  ## Every measured figure of README and docs with its command, commit and machine
	$(BIN)/python -m benchmarks.claims

mutants: $(READY)                 ## Put small bugs into a copy of the code, one at a time: do the tests notice?
	$(BIN)/python -m benchmarks.mutants

fuzz: $(READY)                    ## Damaged and forged files of every format, ten minutes of them
	$(BIN)/python -m benchmarks.fuzz --seconds 600

lock:            ## Rewrite the locks (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra dev pyproject.toml -o requirements/dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra bench pyproject.toml -c requirements/dev.lock -o requirements/bench.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra docs pyproject.toml -c requirements/dev.lock -o requirements/docs.lock

clean:           ## Remove the virtual environment and caches
	rm -rf $(VENV) docs/_build docs/api/generated docs/gallery .pytest_cache .ruff_cache .mypy_cache .hypothesis
