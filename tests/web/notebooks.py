"""Notebooks at an edge: empty, one cell, nothing but failures, and with one text in every field there is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from enum import Enum
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from knowngood.domain.access import Actor, Scope
from knowngood.domain.issue import Issue, digest
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.domain.measuring.job import ArmFinished, ArmSpec, EnvironmentReady, JobEnded, JobSpec, JobStarted
from knowngood.domain.measuring.machine import LONGEST_WORD, Machine
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.notes import add_note
from knowngood.store.jobs.event_recorder import record_event
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import app_of
from tests.web.given import BAD, BUILDS, CPU_ONLY, GOOD, GPU_CLASS, GPU_MACHINE, ISSUES, MASK, OLD, Asked

Value = TypeVar("Value")

HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)></textarea></title></pre>"
    "<style>*{display:none}</style><a href=javascript:alert(4)>[x](javascript:alert(5))</a><iframe src=//x.example>"
    "{{7*7}}{% raw %}${alert(6)}<!-- &lt;b&gt; &#x3c;script&#x3e;alert(7)"
)
RIGHT_TO_LEFT = (
    "\u202eفشل تجميع \u05e0\u05d9\u05e1\u05d9\u05d5\u05df create_block_mask على المعالج\u202c — العربية עברית"
)
LONG = ("long words " * 400 + "a_name_without_any_place_to_break_it" * 200)[:10_000]

# Names that addresses, digests and other rows hold on to, and what is read as a version or an address.
_NAMES = frozenset(
    {"id", "url", "arm", "variant", "code", "about", "workaround", "says", "applies_to", "env", "arms", "params"}
    | {"exercises", "requires", "packages", "signature", "state", "imported", "signal", "marked", "probes"}
    | {"torch", "requirement", "cuda", "triton", "pinned_triton", "python", "origin", "git", "sandbox"}
)


@dataclass(frozen=True)
class Notebook:
    """`fill` makes it; `text` stands in every field that people or processes write."""

    name: str
    fill: Callable[[Engine], None]
    text: str = ""


def dressed(value: Value, text: str) -> Value:
    """The same with `text` in place of every text that is not a name."""
    if is_dataclass(value) and not isinstance(value, type):
        told = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        return replace(value, **{name: old if name in _NAMES else dressed(old, text) for name, old in told.items()})
    if isinstance(value, str) and not isinstance(value, Enum):
        return text  # type: ignore[return-value]  # a str for a str
    if isinstance(value, tuple):
        return tuple(dressed(one, text) for one in value)  # type: ignore[return-value]  # as above
    if isinstance(value, Mapping):
        return {text[:200]: dressed(one, text) for one in value.values()}  # type: ignore[return-value]  # as above
    return value


def _nothing(_engine: Engine) -> None:
    return


def _one_cell(engine: Engine) -> None:
    given.save(engine, [replace(MASK, variants=(), workarounds=(), arms=MASK.arms[:2])], [GOOD])
    given.run(engine, Asked([GOOD], NOON, issues=[replace(MASK, variants=(), workarounds=(), arms=MASK.arms[:2])]))


def _only_failures(engine: Engine) -> None:
    given.save(engine, ISSUES, BUILDS)
    for at, hardware in enumerate((HARDWARE, GPU_CLASS)):
        builds = [one for one in BUILDS if one != CPU_ONLY]
        given.run(engine, Asked(builds, NOON + timedelta(minutes=at), hardware), _fails)


def _fails(_spec: JobSpec, arm: ArmSpec) -> Outcome:
    return Outcome.PASS if arm.arm == "control" else Outcome.MATCH


def _everywhere(text: str) -> Callable[[Engine], None]:
    def fill(engine: Engine) -> None:
        issues = [_dressed_issue(issue, text) for issue in ISSUES]
        given.save(engine, issues, [dressed(build, text) for build in BUILDS])
        for hardware in (HARDWARE, GPU_CLASS):
            given.queue(engine, Asked([OLD, BAD, GOOD], NOON, hardware, issues=issues))
        while (spec := given.claim(engine, NOON)) is not None:
            _run(engine, spec, text)
        line = " ".join(text.split())
        said = "".join(sign for sign in line if sign.isprintable())
        given.watch(engine, "vision-team", WatchListContent(Watch(issues=(MASK.id,)), (HARDWARE,), said[:200]))
        with unit_of_work(engine) as s:
            key = CellKey(MASK.id, BAD.id, HARDWARE)
            add_note(s, key, NoteKind.DISPUTE, said[:1000], by=Actor(said[:60]), now=NOON)

    return fill


def _dressed_issue(issue: Issue, text: str) -> Issue:
    """Its script stays one that a page can show as Python, with the text in a comment; the title keeps its own text
    in Chinese too, so that both languages are looked at.
    """
    script = f'"""{text}"""\n# {text}\ndef baseline(): ...\n'
    return replace(dressed(issue, text), script=script)


def _run(engine: Engine, spec: JobSpec, text: str) -> None:
    brief = text[:LONGEST_WORD]
    machine: Machine = dressed(GPU_MACHINE if spec.hardware == GPU_CLASS else given.CPU_MACHINE, brief)
    lock = f"# {text}\n"
    ready = EnvironmentReady(spec.job, spec.try_no, lock, digest(lock), {text[:200]: text[:200]}, {}, 12.0)
    with unit_of_work(engine) as s:
        record_event(s, JobStarted(spec.job, spec.try_no, machine), NOON)
        record_event(s, ready, NOON)
        for arm in spec.arms:
            outcome = given.outcome_of(spec, arm)
            plain = given.record_of(spec, arm, outcome)
            record = replace(dressed(plain, brief), trouble=dressed(plain.trouble, text))
            record = replace(record, observed=dict.fromkeys(record.observed, text))
            if record.raised is not None:
                traceback = f"{text}\n{given.LINE} {text}" if outcome is Outcome.MATCH else text
                record = replace(record, raised=replace(record.raised, message=text, text=traceback))
            told = ArmFinished(
                spec.job,
                spec.try_no,
                arm.attempt,
                record,
                f"{text}\n{given.LINE} {text}\n",
                digest(lock),
                machine.digest,
                NOON,
                NOON + timedelta(seconds=5),
            )
            record_event(s, told, NOON + timedelta(seconds=5))
        record_event(s, JobEnded(spec.job, spec.try_no, text[:2000]), NOON)


NOTEBOOKS = {
    notebook.name: notebook
    for notebook in (
        Notebook("empty", _nothing),
        Notebook("one cell", _one_cell),
        Notebook("only failures", _only_failures),
        Notebook("10,000 signs", _everywhere(LONG), LONG),
        Notebook("right to left", _everywhere(RIGHT_TO_LEFT), RIGHT_TO_LEFT),
        Notebook("hostile", _everywhere(HOSTILE), HOSTILE),
    )
}

# Pages that ask a question show more than their form when it is asked.
_ASKED = {
    "/environment": "?build=2.7.1&hardware=H100&has=xformers%3D%3D0.0.29",
    "/matrix": "?columns=all",
    "/compare": f"?a={quote(BAD.id)}&b={quote(GOOD.id)}",
    "/upgrade": f"?from={quote(BAD.id)}&watch=vision-team&enough=50",
}
_DOCUMENT = "api"
_NO_PAGES = ("/static", "/badge", "/feeds", "/preferences")


def addresses_of(client: TestClient) -> dict[str, str]:
    """The address of every page there is, by its path; of pages about something, about the first there is.

    Found in the application itself, so that a page that is added later is looked at too.
    """
    known = _known(client)
    found = {}
    for path in _page_paths(client):
        filled = path.replace("{name:path}", _DOCUMENT)
        for name, value in known.items():
            filled = filled.replace(f"{{{name}}}", quote(value, safe=""))
        if "{" in filled:
            continue
        address = f"{filled}{_ASKED.get(path, '')}"
        if path.startswith("/cells/"):
            address += f"?hardware={HARDWARE}"
        response = client.get(address)
        if response.status_code == HTTPStatus.OK and response.headers["content-type"].startswith("text/html"):
            found[path] = address
    found["error"] = "/issues/nothing-like-it"
    return found


def _page_paths(client: TestClient) -> list[str]:
    """Of routers as they were made: those of pages have no prefix."""
    routers = [getattr(route, "original_router", None) for route in app_of(client).routes]
    routes = [route for router in routers if router is not None for route in router.routes]
    return [
        route.path
        for route in routes
        if isinstance(route, APIRoute)
        and "GET" in (route.methods or ())
        and not route.include_in_schema
        and not route.path.startswith(_NO_PAGES)
    ]


def _known(client: TestClient) -> dict[str, str]:
    """The first issue, build, ... by the name that they have in paths."""
    api = "/api/v1"
    found: dict[str, str] = {}
    issues = client.get(f"{api}/issues").json()["issues"]
    builds = client.get(f"{api}/builds").json()["builds"]
    runs = client.get(f"{api}/runs").json()["runs"]
    lists = client.get(f"{api}/watchlists").json()["watchlists"]
    if issues:
        found["issue"] = next((one["id"] for one in issues if one["id"] == MASK.id), issues[0]["id"])
        attempts = client.get(f"{api}/attempts?issue={found['issue']}").json()["attempts"]
        if attempts:
            found["attempt"] = next((one["id"] for one in attempts if one["outcome"] == "match"), attempts[0]["id"])
    if builds:
        found["build"] = next((one["id"] for one in builds if one["id"] == BAD.id), builds[0]["id"])
        found["release"] = found["build"]
    if runs:
        found["run"] = runs[0]["id"]
    if lists:
        found["name"] = lists[0]["name"]
    return found


def sign_in(engine: Engine) -> str:
    """The secret of a token that allows everything, so that forms are looked at too."""
    return given.make_token(engine, *Scope, name="keeper")
