"""Asks the ReDoS checker recheck for a text that makes each pattern slow, for tests/catalogue/attacks.json.

    npm install --prefix /tmp/recheck recheck && .venv/bin/python -m tools.attacks /tmp/recheck

Patterns are those of the shipped signatures, and the harmless ones of tests/catalogue/known_redos.py. What is there
already is not asked again: recheck tries by chance too, and what it found once is kept. It reads JavaScript: what
Python writes otherwise is written anew, possessive repetitions as common ones.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from knowngood.catalogue.loader import read_catalogue, shipped_catalogue
from tests.catalogue.known_redos import HARMLESS

TABLE = Path(__file__).parents[1] / "tests" / "catalogue" / "attacks.json"
ASK = """
const {checkSync} = require("recheck");
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const told = ({status, complexity, error, attack}) => ({
  found: complexity?.summary ?? `${status}: ${error.message ?? error.kind}`,
  pumps: (attack?.pumps ?? []).map(({prefix, pump}) => [prefix, pump]),
  suffix: attack?.suffix ?? "",
});
console.log(JSON.stringify(asked.map(([source, flags]) => told(checkSync(source, flags, {timeout: 60000})))));
"""
_AS_JAVASCRIPT = (
    (r"\(\?P<", "(?<"),
    (r"\(\?P=(\w+)\)", r"\\k<\1>"),
    (r"\(\?>", "(?:"),
    (r"(?<!\\)([*+?}])\+", r"\1"),
    (r"\[(\^?)\]", r"[\1\\]"),
)


def as_javascript(pattern: str) -> tuple[str, str]:
    """Source and flags."""
    flags = re.match(r"\(\?([ims]+)\)", pattern)
    source = pattern[flags.end() :] if flags else pattern
    for written, anew in _AS_JAVASCRIPT:
        source = re.sub(written, anew, source)
    return source, flags[1] if flags else ""


def main(folder: Path) -> None:
    shipped = [issue.signature.pattern for issue in read_catalogue([shipped_catalogue()]).issues]
    known = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    patterns = sorted({*filter(None, shipped), *HARMLESS.values()})
    new = [pattern for pattern in patterns if pattern not in known]
    node = [shutil.which("node") or "node", "-e", ASK]
    asked = json.dumps([as_javascript(pattern) for pattern in new])
    ran = subprocess.run(node, cwd=folder, input=asked, capture_output=True, text=True, check=True)
    table = known | dict(zip(new, json.loads(ran.stdout), strict=True))
    kept = {pattern: table[pattern] for pattern in patterns}
    TABLE.write_text(json.dumps(kept, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
