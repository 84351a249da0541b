"""`knowngood status`: what answers questions here, and how fresh it is. Nothing is read over the network, and nothing
is made.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import has_store
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON
from knowngood.settings import Settings, read_settings
from knowngood.store.knowledge.snapshot import Snapshot, age_in_words, read_shipped


@command(
    "Say where answers come from here (a server, the local store, this release's results), and how fresh they are.",
    AS_JSON,
    example="status",
)
def status(*, as_json: bool) -> Exit:
    settings = read_settings()
    report = {
        "release": version("knowngood"),
        "server": os.environ.get("KNOWNGOOD_SERVER", ""),
        "store": _store(settings) if has_store(settings) else None,
        "shipped": _shipped(read_shipped(), datetime.now(UTC)) if settings.shipped else None,
        "catalogue": [str(folder) for folder in settings.catalogue_folders],
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n" if as_json else "\n".join(_lines(report)) + "\n")
    return Exit.OK


def _store(settings: Settings) -> Mapping[str, Any]:
    """Describe the store. A database elsewhere is named without its password, and not queried."""
    if settings.database_url:
        return {"at": settings.database_url.rpartition("@")[2].partition("?")[0], "cells": None, "newest": None}
    try:
        from knowngood.sqlite_file import read_extent

        cells, newest = read_extent(settings.database_file) or (None, None)
    except ModuleNotFoundError:  # a Python without SQLite
        cells, newest = None, None
    return {"at": str(settings.database_file), "cells": cells, "newest": newest.isoformat() if newest else None}


def _shipped(snapshot: Snapshot, now: datetime) -> Mapping[str, Any]:
    return {
        "of": snapshot.made_at.isoformat(),
        "days": (now - snapshot.made_at).days,
        "issues": len(snapshot.knowledge.known.issues),
        "builds": len(snapshot.knowledge.tested),
        "cells": len(snapshot.knowledge.known.cells),
        "warning": age_in_words(snapshot.made_at, now),
    }


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The sources of answers, in the order in which they are tried."""
    store, shipped = report["store"], report["shipped"]
    results = f": results of {shipped['of'][:10]}, {shipped['days']} days old" if shipped else ""
    yield f"Known Good {report['release']}{results}"
    if report["server"]:
        yield f"server   {report['server']} answers `gate` (KNOWNGOOD_SERVER)"
    if store:
        yield f"store    {store['at']}: {_extent(store)}"
    else:
        yield "store    none here; `knowngood up`, `run` and `import` make one"
    if shipped:
        beside = (
            "for whatever the store lacks or knows from an older measurement" if store else "answers every question"
        )
        yield (f"shipped  {beside}: {shipped['issues']} issues, {shipped['builds']} builds, {shipped['cells']} cells")
    else:
        yield "shipped  left out (KNOWNGOOD_SHIPPED)"
    if shipped and shipped["warning"]:
        yield f"         {shipped['warning']}"
    for folder in report["catalogue"]:
        yield f"issues   of your own in {folder}"


def _extent(store: Mapping[str, Any]) -> str:
    if store["cells"] is None:
        return "not looked into here"
    return f"{store['cells']} cells" + (f", measured until {store['newest'][:10]}" if store["newest"] else "")
