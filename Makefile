# Two commands are all a newcomer needs: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test lint verify cases chaos bench format requirements clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/.runtime ## Play deposits and a day of withdrawals through the whole pipeline (KEEP=1 leaves it running).
	@$(BIN)/tallyhook demo $(if $(KEEP),--keep)

test: $(VENV)/.complete ## Run every test against real Kafka and PostgreSQL, then the short chaos (ARGS=... for some).
ifdef ARGS
	@$(PYTEST) $(ARGS)
else
	@$(PYTEST) -n 2 --dist loadfile -m "not cases and not chaos"
	@$(PYTEST) -m "chaos and not cases"
endif

lint: $(VENV)/.complete ## Check style, types, import directions and dependencies.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/deptry .

verify: lint test ## Everything that is checked before a merge.

cases: $(VENV)/.complete ## Run every case from the life of webhook receivers, the long ones too.
	@$(PYTEST) tests/cases $(ARGS)

chaos: $(VENV)/.complete ## Kill every part again and again under load (long).
	@$(PYTEST) -m chaos --chaos-long $(ARGS)

bench: $(VENV)/.complete ## Measure the stages beside hand-written ones.
	@$(BIN)/tallyhook bench sink
	@$(BIN)/tallyhook bench guard

format: $(VENV)/.complete ## Format the code.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

requirements: $(VENV)/.complete ## Pin the dependencies anew from pyproject.toml.
	@for set in base: local:--extra=local "dev:--extra=local --extra=dev"; do \
	  $(BIN)/pip-compile --quiet --strip-extras --upgrade --no-header --annotation-style=line \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    $${set#*:} --output-file requirements/$${set%%:*}.txt pyproject.toml; \
	done

clean: ## Remove the virtual environment and local state.
	@rm -rf $(VENV) .tallyhook build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What the pipeline and the local stack need.
$(VENV)/.runtime: requirements/local.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Tallyhook needs Python 3.11 to 3.13; this is " + sys.version.split()[0] + ". Set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the Python packages into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/local.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# The same and the tools.
$(VENV)/.complete: $(VENV)/.runtime requirements/dev.txt requirements/programs.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements/programs.txt
	@touch $@
