"""The real application on loopback over a filled store, and schemathesis asking it everything its document allows."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from knowngood.domain.access import Actor, Scope
from knowngood.server import end_streams
from knowngood.store.engine import connect, unit_of_work
from knowngood.store.tokens import create_token
from knowngood.web.auth.principal import AccessPolicy
from tests import serving
from tests.web.asking import app_over
from tests.web.given import NOW, fill

CONFIG = Path(__file__).with_name("schemathesis.toml")


@contextmanager
def served(store: str) -> Iterator[tuple[str, str]]:
    """The address of the application, and a token that allows everything. Event streams end at once, or none would."""
    engine = connect(store)
    fill(engine)
    with unit_of_work(engine) as s:
        made = create_token(s, name="everything", scopes=list(Scope), by=Actor("tests"), now=NOW)
    app = app_over(engine, rules=AccessPolicy(requests_per_s=0))
    end_streams(app)
    with serving.served(app) as address:
        yield address, made.secret
    engine.dispose()


def ask_everything(address: str, token: str, *more: str, limit_s: float) -> str:
    """The findings of schemathesis, as it prints them; empty where it found nothing."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color", "run"]
    asked: Sequence[str] = (f"{address}/openapi.json", "--checks=all", "-H", f"Authorization: Bearer {token}", *more)
    done = subprocess.run([*command, *asked], capture_output=True, text=True, timeout=limit_s, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
