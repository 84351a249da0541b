# Needs Python 3.11+, and from Debian: python3-venv python3-dev make g++ (see README).
.DEFAULT_GOAL := up
.PHONY: up serve dev test test-system test-gpu check check-types check-rules bench soak lock words pictures

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

IF_UNTRUSTED := { echo 'If uv names an invalid peer certificate, a proxy inspects TLS here: set UV_SYSTEM_CERTS=1, or SSL_CERT_FILE to a file that holds its certificate.' >&2; exit 1; }

# One stamp for users (runtime packages, hashes checked), one for developers.
$(VENV)/.installed: pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.13.8"
	test -e $(VENV)/.developer || VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes -r requirements.lock || $(IF_UNTRUSTED)
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps -e .
	touch $@

$(VENV)/.developer: $(VENV)/.installed requirements-dev.lock
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes -r requirements-dev.lock || $(IF_UNTRUSTED)
	touch $@

up: $(VENV)/.installed
	$(BIN)/knowngood up $(if $(PORT),--port $(PORT))

serve: $(VENV)/.installed
	$(BIN)/knowngood serve $(if $(PORT),--port $(PORT))

# What contributors need: see CONTRIBUTING.md.
dev: $(VENV)/.developer

# More files at a time than there are cores (two): they wait for processes, disks and each other's databases.
BY_FILE := --dist loadfile --no-loadscope-reorder
SLOWEST := --durations=15 --durations-min=5
SHARED_OUT := -n 4 $(BY_FILE)

# What takes minutes is left to test-system.
test: $(VENV)/.developer
	$(BIN)/python -m pytest $(SHARED_OUT) $(SLOWEST)

# Only where such tests are: looking into the other files costs each process seconds.
test-system: $(VENV)/.developer
	$(BIN)/python -m pytest -n 4 $(BY_FILE) $(SLOWEST) -m "(system or browser) and not soak" tests/system tests/stories $$(grep -rl --include='test_*.py' 'mark\.system\|"system")' tests)

# Uses the torch of KNOWNGOOD_GPU_PYTHON, else of the `python3` on the PATH; skipped with the reason where there is none.
test-gpu: $(VENV)/.developer
	$(BIN)/python -m pytest -m gpu tests/gpu

check: check-rules check-types

check-types: $(VENV)/.developer
	$(BIN)/mypy

check-rules: $(VENV)/.developer
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/knowngood check
	$(BIN)/python -m tools.budget
	@out=$$($(BIN)/python -m pytest --collect-only -q) || { echo "$$out"; exit 1; }  # compiles what tests import, once

bench: $(VENV)/.developer
	$(BIN)/python -m benchmarks

# Everything at length: also what test-system leaves out, which is more of the same (other widths, levels, sizes).
soak: $(VENV)/.developer
	KNOWNGOOD_SOAK_SEED=$$(od -An -N3 -tu4 /dev/urandom | tr -d " ") KNOWNGOOD_SOAK_KILLS=200 KNOWNGOOD_SOAK_CASES=5000 KNOWNGOOD_SOAK_FAULTS=300 KNOWNGOOD_SOAK_MINUTES=10 KNOWNGOOD_SOAK_HOSTILE_S=600 KNOWNGOOD_SOAK_SLOW=500 KNOWNGOOD_SOAK_SLOW_S=60 $(BIN)/python -m pytest -m "soak or not soak" -s tests/soak tests/hostile/test_doors.py
	KNOWNGOOD_E2E=1 $(BIN)/python -m pytest $(SHARED_OUT) -m soak --ignore tests/soak
	KNOWNGOOD_PACKAGE_CASES=200 $(BIN)/python -m pytest -m system tests/system/test_package.py
	KNOWNGOOD_EXAMPLES=500 $(BIN)/python -m pytest $(SHARED_OUT) -m hypothesis

# Collects the texts of the pages in the Chinese catalogue and compiles it; prints those without Chinese.
words: $(VENV)/.developer
	$(BIN)/python -m tools.words

# Makes the pictures of README and docs from the shipped evidence.
pictures: $(VENV)/.developer
	$(BIN)/python -m tools.pictures

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q

lock: $(VENV)/.installed
	$(COMPILE) --group dev --extra server --extra postgres --extra mcp -o requirements-dev.lock
	$(COMPILE) --extra server -c requirements-dev.lock -o requirements.lock
	$(COMPILE) --extra postgres --extra ray -c requirements-dev.lock -o requirements-fleet.lock
