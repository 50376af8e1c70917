# Every target sets up what it needs in .venv; nothing has to be done first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# compiled once, which is half of what collecting costs; a file's tests in one process, so that what they share is made once
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: help demo test test-all lint check fuzz kills audit bench clean
help:
	@echo "make demo   solve a constrained FrozenLake from logs and show what came out"
	@echo "make test   run the tests, but for the slow ones"
	@echo "make test-all  run every test: statistics, studies, browsers, long fuzzing too"
	@echo "make check  ruff, mypy, import-linter, make test"
	@echo "make fuzz   damage tables, problem files and run folders, 10,000 times; what was recorded is not run again"
	@echo "make kills  kill runs 1,000 times at random moments and take them up again; what was recorded is not run again"
	@echo "make audit  look for known advisories of what is installed"
	@echo "make bench  run the benchmarks"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "checkrein needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt torch  # first: what depends on it must find it there
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	$(PIP) install --quiet --constraint constraints.txt --no-deps icu-sepsis  # read for its matrices; it asks for the old gym
	$(PIP) install --quiet --constraint constraints.txt --no-deps obp linearmodels  # read for their tables, never imported
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime
	$(BIN)/checkrein demo --out demo-run

test: $(VENV)/.dev
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.dev
	$(PYTEST)

check: lint test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

ATTEMPTS ?= 10000
fuzz: $(VENV)/.dev
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --attempts $(ATTEMPTS) --record fuzz-record.jsonl

KILLS ?= 1000
kills: $(VENV)/.dev
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz.kills --kills $(KILLS) --record kills-record.jsonl

audit: $(VENV)/.dev
	$(PIP) install --quiet pip-audit
	$(BIN)/pip-audit --skip-editable

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/import_cost.py
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/logs.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/functions.py samples heads memory

clean:
	rm -rf $(VENV) demo-run dist build
