#!/usr/bin/env bash
# What action.yml runs. Asking a server needs Python 3.11 and nothing else; without one the package is installed, and
# answers from a snapshot, or from the results that come with it.
set -euo pipefail

python="${GATE_PYTHON:-python3}"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "::error::The Known Good gate needs Python 3.11 or newer; add actions/setup-python before it."
  exit 2
fi
if [ -z "${GATE_SERVER:-}${KNOWNGOOD_SERVER:-}" ]; then
  venv="$RUNNER_TEMP/knowngood"
  if [ ! -e "$venv/.installed" ]; then  # by an earlier step of the job
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
    touch "$venv/.installed"
  fi
  python="$venv/bin/python"
fi
# -P: a folder `app` of the project that is checked must not be taken for ours.
PYTHONPATH="$GITHUB_ACTION_PATH" exec "$python" -P -m knowngood.app.features.gate.cli.action
