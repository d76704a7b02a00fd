# The one place for commands. Each sets up .venv by itself, with the versions of constraints.txt.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

# test-processors: whose BLAS kernels, with how many threads, and what is run with them
PROCESSORS ?= Haswell Zen Sandybridge Prescott $(shell grep -qs avx512f /proc/cpuinfo && echo SkylakeX)
THREADS ?= 1 2
TESTS ?= tests/testing/test_common_checks.py tests/solvers tests/oracle tests/learners/test_latent_svm.py \
	tests/spectral tests/test_docs.py

.PHONY: demo test test-long test-processors lint docs bench clean fuzz package reports

demo: .venv/installed  ## run the main job on embedded data and show its result
	$(BIN)/tacit demo

# one thread each: the two workers have the cores already
test test-long: export OPENBLAS_NUM_THREADS ?= 1
test: .venv/installed  ## tests and doctests, a few minutes; warnings are errors
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-long: .venv/installed  ## what takes longer: all pairs, killed processes, clusters, browsers, 12,000 bad inputs
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

test-processors: .venv/installed  ## the tests that rounding could upset, as on other processors
	@set -e; for processor in $(PROCESSORS); do for threads in $(THREADS); do \
		echo "OPENBLAS_CORETYPE=$$processor OPENBLAS_NUM_THREADS=$$threads"; \
		OPENBLAS_CORETYPE=$$processor OPENBLAS_NUM_THREADS=$$threads \
			$(BIN)/python -m pytest -q -n 2 --dist worksteal $(TESTS); \
	done; done

fuzz: .venv/installed  ## a hundred thousand bad inputs: none may end in a crash, a hang, a NaN or a raw error
	$(BIN)/python -m tests.fuzz --inputs 100000

lint: .venv/installed  ## style, types and plain English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/prose.py

docs: .venv/installed  ## the pages of docs/ as HTML; warnings are errors
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

reports: .venv/installed  ## pictures of the reports of all commands, for docs/images/reports; needs Chromium
	$(BIN)/python docs/reports.py

bench: .venv/installed  ## ratios against peers, printed and written to benchmarks/results
	$(BIN)/python -m benchmarks

# the wheel in an environment of its own, without extras; some tests with the files of the sdist
package: .venv/installed  ## wheel and sdist in dist/, checked and tried
	rm -rf dist .venv-package
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt build twine hatchling
	.venv-package/bin/python -m build --no-isolation
	.venv-package/bin/python -m twine check --strict dist/*
	.venv-package/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd dist && unset PYTHONPATH && ../.venv-package/bin/tacit --version && ../.venv-package/bin/python -m doctest -o ELLIPSIS ../src/tacit/__init__.py
	cd dist && tar xzf *.tar.gz && cd tacit-*/ && PYTHONPATH=src ../../$(BIN)/python -m pytest -q tests/test_imports.py tests/data/test_ragged.py tests/test_docs.py -k "not page"

clean:
	rm -rf .venv .venv-package dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/images/built

.venv/installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "tacit needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[all,dev]"
	touch $@
