# Every target sets up what it needs: `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup system lint format test test-real demo demo-kernel
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup: $(READY) ## the virtual environment with pinned dependencies

$(READY): pyproject.toml constraints.txt
	@tests/setup-system python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

system: ## what tests need of the system: installs the packages that are missing
	tests/setup-system

lint: $(READY) ## ruff, mypy --strict, the walls between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(READY) system ## everything but the slow real things, on SQLite and PostgreSQL, with real processes
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not real'

test-real: $(READY) system ## the slow real things: processes that die, real mail servers, the kernel's own scripts
	$(BIN)/python -m pytest -q -m real --durations=15

demo: $(READY) ## the whole pipeline on an example history, from push to mail (ARGS='--seed 7 --serve --json')
	@$(BIN)/bisectbot demo $(ARGS)

demo-kernel: $(READY) ## the same on real kernels: built with tuxmake, booted in QEMU (ARGS='--seed 7')
	@tests/setup-system kernel
	@$(BIN)/bisectbot demo --kernel $(ARGS)
