"""Write `repros/locks.tsv`: the packages that each build was measured among, by the shipped evidence.

Of several environments of a build it is the one in which the issue that shows whether Dynamo and Inductor work was run
most, else the one with most attempts. Those that were adopted, and not resolved here, are left out, and so are those of
issues that bring packages of their own: which versions fail together is what they are about.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from typing import Any

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import parse_build_id
from knowngood.environments.wheels.locks import FILE

SMOKE = "torch-compile-smoke"


def read_locks() -> str:
    """The lines of the file, in the order of builds. The same evidence gives the same text."""
    environments, resolved, attempts = dict[str, dict[str, str]](), set[str](), defaultdict[str, Counter[str]](Counter)
    for path in sorted((SHIPPED / "evidence").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                item: dict[str, Any] = json.loads(line)
                if item["kind"] == "environment":
                    environments[item["lock_digest"]] = item["packages"]
                elif item["kind"] == "lock" and item["text"].startswith("lock-version"):
                    resolved.add(item["digest"])
                elif item["kind"] == "attempt":
                    attempts[item["build"]][item["lock_digest"]] += 1000 if item["issue"] == SMOKE else 1
    written = []
    for build in sorted(attempts, key=parse_build_id):
        usual = min((len(environments[lock]) for lock in attempts[build] if lock in resolved), default=0)
        chosen = [
            lock for lock, _ in attempts[build].most_common() if lock in resolved and len(environments[lock]) == usual
        ]
        if chosen:
            packages = " ".join(f"{name}=={version}" for name, version in sorted(environments[chosen[0]].items()))
            written.append(f"{build}\t{chosen[0]}\t{packages}\n")
    return "".join(written)


if __name__ == "__main__":
    FILE.write_text(read_locks(), encoding="utf-8")
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes\n")
