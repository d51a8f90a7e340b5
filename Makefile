# Every target runs in one virtual environment, .venv/, which is made when it is needed. Only
# MediaPipe has one of its own.

# TensorFlow logs its CPU instructions and its missing GPU on every start.
export TF_CPP_MIN_LOG_LEVEL ?= 3

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

# The Python that makes .venv/: the first of these that is of a supported version.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUPPORTED)' 2>/dev/null && echo $$python && break; done)

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
# These files say that .venv/ is up to date with what they depend on.
READY := .venv/ready
BENCH_READY := .venv/bench-ready
DOCS_READY := .venv/docs-ready
RELEASE_READY := .venv/release-ready
# MediaPipe, in which tests open exported models.
MEDIAPIPE_READY := .venv-mediapipe/ready
# transformers 4, the last with TensorFlow's classes, with which docs/migrating/ is compared.
TRANSFORMERS4_READY := .venv-transformers4/ready

.PHONY: demo test test-end-to-end test-docs test-all test-processors coverage matrix soak paper-small lint lock wheel \
	audit bench docs clean

demo: $(READY)
	$(BIN)/python -m bert_tf demo

# Runs groups of tests, each in a process of its own.
TESTS := $(BIN)/python -m tests.run

test: $(READY)
	$(TESTS) -m "not slow and not end_to_end"

# The end-to-end tests: they train, export, run commands, and compare all answers.
test-end-to-end: $(READY)
	$(TESTS) -m "end_to_end and not slow"

# Tests what documents, benchmarks and experiments say and do, and executes the notebooks of
# docs/tutorials/ as they stand, on small data.
test-docs: $(READY)
	$(TESTS) --only docs notebooks -m "not slow or notebook"

# Without a package index, the tests that need MediaPipe or transformers 4 are skipped.
test-all: $(READY)
	-$(MAKE) $(MEDIAPIPE_READY)
	-$(MAKE) $(TRANSFORMERS4_READY)
	$(TESTS) --only all

# Runs `make test` as this processor and as others compute: make test-processors ARGS="--help"
test-processors: $(READY)
	$(BIN)/python -m tests.processors $(ARGS)

# Runs the tests and shows which lines of bert_tf they execute: a table, and pages in build/coverage/.
coverage: $(RELEASE_READY)
	rm -f build/tests/.coverage.*
	$(TESTS) --only all -m "not slow or notebook" --cov bert_tf --cov-report=
	$(BIN)/python -m coverage combine --keep build/tests
	$(BIN)/python -m coverage html -d build/coverage
	$(BIN)/python -m coverage report

# Tests the wheel with several versions of Python, TensorFlow and the rest, for an hour and more:
# make matrix ARGS="--help"
matrix: $(RELEASE_READY)
	$(BIN)/python -m tests.matrix $(ARGS)

# Injects faults into tiny runs, an hour of them, and prints what was lost: make soak ARGS="--times 2"
soak: $(READY)
	$(BIN)/python -m benchmarks.soak $(ARGS)

# A small version of every table of the paper, some hours: make paper-small ARGS="--help"
paper-small: $(READY)
	$(BIN)/python -m bert_tf.experiments.small $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --diff .
	$(BIN)/mypy

# Builds the source distribution and the wheel in dist/, and checks them.
wheel: $(RELEASE_READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

# Lists known vulnerabilities of the packages in the reference environment.
audit: $(RELEASE_READY)
	$(BIN)/python -m pip_audit --requirement requirements.lock --no-deps --disable-pip

# Installs the peers and compares bert_tf with them, some two hours; results and a picture are kept in
# runs/speed. ARGS names another of benchmarks/: make bench ARGS="vocabulary --help"
bench: $(BENCH_READY)
	$(BIN)/python -m benchmarks.$(or $(ARGS),speed --out runs/speed)

# Builds the site of docs/ in build/docs/, with the reference that the code decides. A link that
# leads nowhere, like every other warning, is an error.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --fresh-env --quiet \
		--doctree-dir build/doctrees docs build/docs

$(RELEASE_READY): $(READY)
	$(PIP) --editable ".[release]"
	@touch $@

clean:
	rm -rf .venv .venv-mediapipe .venv-transformers4 .matrix build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@python="$(PYTHON)"; test -n "$$python" && "$$python" -c '$(SUPPORTED)' 2>/dev/null || { \
		echo "bert_tf needs Python 3.11, 3.12 or 3.13; name one: make PYTHON=/path/to/python3.12" >&2; \
		exit 1; }
	"$(PYTHON)" -m venv .venv
	@# Older ones, such as Debian 12's, cannot build seqeval, which has no wheel.
	$(PIP) "pip>=23.1"
	$(PIP) --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

LOCKED := import json, sys; \
	found = [each["metadata"] for each in json.load(sys.stdin)["install"]]; \
	lines = sorted(each["name"].lower() + "==" + each["version"] for each in found); \
	print("\# Written by make lock from requirements.txt.", *lines, sep="\n")

# Writes requirements.lock: the versions of requirements.txt and of all that these packages require.
# Run it with Python 3.11: later Pythons may resolve to versions that 3.11 does not have.
lock: $(READY)
	$(PIP) --dry-run --ignore-installed --quiet --report .venv/lock.json -r requirements.txt
	$(BIN)/python -c '$(LOCKED)' < .venv/lock.json > requirements.lock

$(BENCH_READY): $(READY)
	$(PIP) --editable ".[bench]"
	@touch $@

$(DOCS_READY): $(READY)
	$(PIP) --editable ".[docs]"
	@touch $@

$(MEDIAPIPE_READY): tests/export/litert/mediapipe.txt
	"$(PYTHON)" -m venv .venv-mediapipe
	.venv-mediapipe/bin/python -m pip install --disable-pip-version-check --requirement $<
	@touch $@

# It takes everything else from .venv/.
$(TRANSFORMERS4_READY): tests/docs/transformers4.txt $(READY)
	$(BIN)/python -m venv .venv-transformers4
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > \
		"$$(.venv-transformers4/bin/python -c 'import site; print(site.getsitepackages()[0])')/base.pth"
	.venv-transformers4/bin/python -m pip install --disable-pip-version-check --no-deps --requirement $<
	@touch $@
