#!/usr/bin/env bash
# What action.yml runs. Asking a server needs Python 3.11 and nothing else; without one the package is installed, and
# answers from a snapshot, or from the results that come with it.
#
# The workspace may be a pull request's, and the step may have secrets: its files are read and never run. Python starts
# isolated (-I: neither the working directory nor a variable says what it imports) and, but for our own environment,
# without what its site-packages add (-S: a project that is installed there in editable form is the workspace again).
set -euo pipefail

for name in "${!PYTHON@}" "${!PIP_@}"; do
  case "$name" in
    PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_TRUSTED_HOST | PIP_CERT | PIP_PROXY) ;;
    *) unset "$name" ;;  # such as PIP_CONFIG_FILE and PIP_CACHE_DIR, which may lie in the workspace
  esac
done
isolated=(-I -S)
python="$(command -v -- "${GATE_PYTHON:-python3}" || true)"
if [ -z "$python" ] || ! "$python" "${isolated[@]}" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "::error::The Known Good gate needs Python 3.11 or newer; add actions/setup-python before it."
  exit 2
fi
if [ -z "${GATE_SERVER:-}${KNOWNGOOD_SERVER:-}" ]; then
  home="$RUNNER_TEMP/knowngood"
  if [ ! -e "$home/.installed" ]; then  # by an earlier step of the job
    mkdir -p "$home"
    (
      cd "$home"
      "$python" "${isolated[@]}" -m venv venv
      venv/bin/python -I -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
    )
    touch "$home/.installed"
  fi
  python="$home/venv/bin/python"
  isolated=(-I)
fi
exec "$python" "${isolated[@]}" -c '
import sys
sys.path.insert(0, f"{sys.argv[1]}/app")
from knowngood.gate.asking import main
sys.exit(main())
' "$GITHUB_ACTION_PATH"
