"""The doors that a question can go through, over a store that is filled as it stands: server, command and snapshot."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa
import structlog
import uvicorn

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.verdict import Cell
from knowngood.main import main
from knowngood.serialization import codec
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.store.knowledge.signed_snapshot import make_key
from knowngood.store.migrations import migrate
from knowngood.store.tables import cells
from knowngood.web.auth.principal import AccessPolicy
from tests.web.asking import app_over

KEY = make_key()


@contextmanager
def a_server(engine: Engine) -> Iterator[str]:
    """Its address. It logs errors alone: a line of its log would stand in what a command answers in this process."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("error"))
    app = app_over(engine, clock=lambda: datetime.now(UTC), rules=AccessPolicy(requests_per_s=0))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        structlog.configure(**before)


def fill(engine: Engine, issues: Iterable[Issue], builds: Iterable[Build], found: Iterable[Cell]) -> None:
    migrate(engine)
    now = datetime.now(UTC)
    with unit_of_work(engine) as s:
        save_catalogue(s, list(issues), list(builds), now)
        touch(s)
        rows = [
            {
                "issue": cell.issue,
                "build": cell.build,
                "hardware": cell.hardware,
                "verdict": cell.verdict,
                "measured_at": cell.measured_at,
                "doc": codec.CELL.dump_json(cell, exclude_defaults=True).decode(),
            }
            for cell in found
        ]
        s.execute(sa.insert(cells), rows)


def arguments_of(fields: Mapping[str, Any]) -> list[str]:
    """The arguments that ask the gate's command the same. Files are written where the command runs."""
    arguments = [f"--{name}={fields[name]}" for name in ("build", "python", "severity") if fields.get(name)]
    for name in ("issues", "component", "package"):
        arguments += [f"--{name}={','.join(fields[name])}"] if fields.get(name) else []
    arguments += [f"--hardware={class_}" for class_ in fields.get("hardware", ())]
    for option, name in (("-r", "environment"), ("--policy", "policy")):
        if file := fields.get(name):
            Path(file["name"]).write_text(file["content"], encoding="utf-8")
            arguments += [option, file["name"]]
    return arguments


def told(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The gate's exit code and its document."""
    with monkeypatch.context() as own:
        out = TextIOWrapper(BytesIO())
        own.setattr("sys.stdout", out)
        own.setattr("sys.argv", ["knowngood", "gate", *arguments, "--format", "json"])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), comparable(out.buffer.getvalue().decode())


def commanded(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """The document of any other command, in this process."""
    with monkeypatch.context() as own:
        out = TextIOWrapper(BytesIO())
        own.setattr(sys, "argv", ["knowngood", *arguments])
        own.setattr("sys.stdout", out)
        with pytest.raises(SystemExit):
            main()
        out.flush()
    return comparable(out.buffer.getvalue().decode())


def comparable(text: str) -> dict[str, Any]:
    """Less the time and the server's address."""
    document: dict[str, Any] = json.loads(re.sub(r"http://127\.0\.0\.1:\d+/", "/", text)) if text else {}
    return {name: value for name, value in document.items() if name not in {"decided_at", "known_at"}}
