"""The JSON Schema of the policy file, for editors and tools of others. `python -m
knowngood.gate.policy_schema` writes it.

It says what each key may hold; what names mean, only the gate knows.
"""

import sys
from pathlib import Path
from typing import Any

from knowngood.gate.policy_file import PolicyFile
from knowngood.serialization.toml_models import schema_of, schema_text

PUBLISHED = Path(__file__).with_name("policy.schema.json")


def policy_schema() -> dict[str, Any]:
    """The schema of `knowngood.toml`."""
    return schema_of(PolicyFile, "A policy of the Known Good gate (knowngood.toml)")


def write_schema(file: Path) -> Path:
    file.write_text(schema_text(policy_schema()), encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write_schema(PUBLISHED).name}\n")
