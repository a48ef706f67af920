# Everything a newcomer needs: `make demo` and `make test`. Only Python 3.11+, make and a package index are required.
PYTHON ?= python3
PY := .venv/bin/python
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
# A matrix of a few hundred rows gains nothing from more threads and loses much on shared cores.
export OPENBLAS_NUM_THREADS := 1

.PHONY: help demo run test test-slow check format bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    a finished tournament on demo models, then the site (DEMO_SERVE=0: without the site)"
	@echo "make run     the site with your own data in ./var"
	@echo "make test    the whole suite; make test-slow the long checks"
	@echo "make check   formatting, lint, types, contracts, migrations"
	@echo "make bench   the benchmarks of docs/benchmarks.md"

# uv from the PATH, or one of our own where there is none.
UV = $(shell command -v uv >/dev/null 2>&1 && echo uv || echo .tools/bin/uv)

.tools/bin/uv:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tiltyard needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@"$(PYTHON)" -m venv .tools || { echo "Python lacks its venv module (Debian: apt install python3-venv)."; exit 1; }
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv

.PHONY: uv
uv:
	@command -v uv >/dev/null 2>&1 || $(MAKE) --no-print-directory .tools/bin/uv

.venv/.runtime: pyproject.toml uv.lock | uv
	@echo "Installing what Tiltyard needs ..."
	@$(UV) sync --quiet --frozen --no-dev --inexact --python "$(PYTHON)"
	@touch $@

.venv/.dev: pyproject.toml uv.lock | uv
	@echo "Installing what the tests need ..."
	@$(UV) sync --quiet --frozen --inexact --python "$(PYTHON)"
	@touch .venv/.runtime $@

demo: .venv/.runtime
	@TILTYARD_DEMO=1 TILTYARD_DATA_DIR=var/demo $(PY) manage.py demo

run: .venv/.runtime
	@$(PY) manage.py serve

test: .venv/.dev
	@$(PY) tests/run.py

test-slow: .venv/.dev
	@$(PY) tests/run.py --slow

check: .venv/.dev
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m ruff check .
	.venv/bin/python -m mypy
	.venv/bin/python -c "from importlinter.cli import lint_imports_command; lint_imports_command()"
	find templates -name '*.html' -print0 | xargs -0 -r .venv/bin/djade --target-version 5.2 --check
	DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -W error manage.py makemigrations --check --dry-run
	DJANGO_SETTINGS_MODULE=config.settings.test $(PY) manage.py check

format: .venv/.dev
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .
	find templates -name '*.html' -print0 | xargs -0 -r .venv/bin/djade --target-version 5.2

bench: .venv/.dev
	$(PY) benchmarks/tournament.py
	$(PY) -m benchmarks.fairness
	$(PY) benchmarks/pairing.py
	$(PY) -m benchmarks.coverage --runs 500
	$(PY) -m benchmarks.ratings --sizes small

clean:
	rm -rf .venv .tools staticfiles .mypy_cache .ruff_cache .pytest_cache
