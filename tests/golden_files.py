"""Golden files: what the product says of the shipped evidence, written down so that a change of it is seen in review.

Where a difference is meant (new evidence, a mended rule), accept it and look at what `git diff` shows:

    KNOWNGOOD_ACCEPT=1 python -m pytest tests/move/compare/test_golden.py
"""

import json
import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, told: object, *, folder: Path = GOLDEN) -> None:
    """`told` is text, or what JSON can say. With KNOWNGOOD_ACCEPT=1 it is written instead of compared."""
    text = told if isinstance(told, str) else f"{json.dumps(told, indent=1, ensure_ascii=False)}\n"
    path = folder / name
    if os.environ.get("KNOWNGOOD_ACCEPT") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"{name} is not there yet; KNOWNGOOD_ACCEPT=1 writes it"
    assert text == path.read_text(encoding="utf-8"), (
        f"{name} differs; where that is meant, KNOWNGOOD_ACCEPT=1 accepts it"
    )
