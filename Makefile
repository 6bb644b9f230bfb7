# Two commands are all a newcomer needs: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS_EACH ?= 30
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test lint verify helm-verify alerts-verify cases chaos hostile fuzz bench format requirements clean

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

helm-verify: $(VENV)/.complete ## Check the chart: lint, rendering, refusals, under Helm 3 and 4, against every Kubernetes at hand.
	@$(PYTEST) tests/unit/packaging -k "chart or compose or dockerfile or healthcheck" --every-kubernetes $(ARGS)

alerts-verify: $(VENV)/.complete ## Check metrics, dashboard, alerts and runbooks, with a Prometheus that scrapes a running pipeline.
	@command -v promtool >/dev/null && command -v prometheus >/dev/null || { echo "promtool and prometheus are not installed (Debian: apt-get install prometheus)"; exit 1; }
	@$(BIN)/python -m tallyhook.operations.metrics_page --check
	@$(BIN)/python -m tallyhook.operations.dashboard --check
	@$(PYTEST) tests/alerts tests/unit/test_metrics.py tests/unit/test_lag.py $(ARGS)

cases: $(VENV)/.complete ## Run every case from the life of webhook receivers, the long ones too.
	@$(PYTEST) tests/cases $(ARGS)

chaos: $(VENV)/.complete ## Kill, freeze, cut, fill up and slow down every part under load (half an hour, 40 minutes at most).
	@$(PYTEST) tests/chaos tests/integration -m chaos --chaos-long --session-timeout=2400 $(ARGS)

hostile: $(VENV)/.complete ## Send 100,000 hostile requests to the door, and everything else that reads what strangers send.
	@$(PYTEST) tests/hostile --hostile-long $(ARGS)

# Atheris has wheels for Linux on x86_64 alone, so that it is no part of the development requirements.
fuzz: $(VENV)/.complete ## Search with Atheris for bytes that break a reader (Linux; SECONDS_EACH=30 for each of the targets).
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements/fuzz.txt
	@for target in tests/hostile/fuzz_*.py; do \
	  echo "$$target"; \
	  $(BIN)/python -m tests.hostile.$$(basename $$target .py) -max_total_time=$(SECONDS_EACH) -max_len=4096 -verbosity=0; \
	done

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
