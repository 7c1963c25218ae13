# Two commands: `make demo` (Python >= 3.11 alone) and `make test` (with Node >= 20). Everything else is a part of them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 4

.PHONY: demo test lint tools schemas bench clean

demo: $(STAMP)
	@$(BIN)/skillup run cases/demo --agent demo --expected cases/demo/expected.yaml

test: $(VENV)/.dev lint tools
	@$(BIN)/python -m pytest -q -n $(JOBS) $(PYTEST_ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary

tools:
	@sh tests/tools/install.sh >/dev/null

schemas: $(STAMP)
	@$(BIN)/python -m skillup.schemas docs/schemas

bench: $(VENV)/.dev tools
	@$(BIN)/python -m benchmarks

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(STAMP) pyproject.toml
	@$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group dev
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache
