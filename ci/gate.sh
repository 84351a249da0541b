#!/usr/bin/env bash
# What action.yml runs. Asking a server needs Python 3.11 and nothing else; reading a snapshot installs the package.
set -euo pipefail

python="${GATE_PYTHON:-python3}"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "::error::The Known Good gate needs Python 3.11 or newer; add actions/setup-python before it."
  exit 2
fi
if [ -n "${GATE_SNAPSHOT:-}" ]; then
  "$python" -m venv "$RUNNER_TEMP/knowngood"
  python="$RUNNER_TEMP/knowngood/bin/python"
  "$python" -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
fi
# -P: a folder `app` of the project that is checked must not be taken for ours.
PYTHONPATH="$GITHUB_ACTION_PATH" exec "$python" -P -m knowngood.app.features.gate.cli.action
