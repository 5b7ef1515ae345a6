# Every target sets up what it needs in .venv; nothing else has to be installed but Python ≥ 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint format bench clean

demo: $(VENV)/core
	$(BIN)/rollin demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.tabular

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# one stamp per set of extras, made anew when pyproject.toml changes
$(VENV)/core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
