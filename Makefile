# The one place for commands. Each sets up .venv by itself, with the versions of constraints.txt.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

.PHONY: demo test lint docs bench clean

demo: .venv/installed  ## run the main job on embedded data and show its result
	$(BIN)/tacit demo

test: .venv/installed  ## all tests and doctests; warnings are errors
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/installed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/installed  ## the pages of docs/ as HTML; warnings are errors
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

bench: .venv/installed  ## ratios against peers, printed and written to benchmarks/results
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/images/built

.venv/installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "tacit needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[all,dev]"
	touch $@
