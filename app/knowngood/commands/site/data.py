"""The data of a site as JSON, with its schema, in the words of the API; and the words that issues are found by."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import Field

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell
from knowngood.matrix.schemas import (
    BuildBody,
    CellBody,
    HeldClaimBody,
    HistoryBody,
    IssueBody,
    cell_body,
    held_claim_bodies,
    history_bodies,
    issue_body,
)
from knowngood.web.json_body import Body

SCHEMA_VERSION = "1.5.0"
"""Raised with every change of the schema, and told in FORMAT.md."""

FORMAT = Path(__file__).with_name("FORMAT.md")


class SiteIssueBody(IssueBody):
    """`url` and `repro_url` are files of the site (the latter empty where there is none); `history` is by class."""

    history: list[HistoryBody]
    held_claims: list[HeldClaimBody]


class LicencesBody(Body):
    """Licences by their SPDX names. `own` is that of results and issues that did not come with Known Good (null:
    whoever made this site has not said).
    """

    catalogue: Literal["Apache-2.0"] = "Apache-2.0"
    results: Literal["CC0-1.0"] = "CC0-1.0"
    own: str | None = None


class SiteDataBody(Body):
    """Everything that the pages of a site say. `cells` are those that were measured, or are inferred from one that was;
    one that is not there was not run, or cannot exist (`requires` of its issue). `as_of` is the time of the newest
    measurement, and `stale` is as of then. Addresses are relative to the site's folder; `evidence_url` is null, for
    attempts are not in a site.
    """

    format: Literal["knowngood-data"] = "knowngood-data"
    schema_version: str = Field(default=SCHEMA_VERSION, pattern=r"^1\.\d+\.\d+$")
    product_version: str
    as_of: datetime
    licences: LicencesBody = LicencesBody()
    hardware: list[str]
    issues: list[SiteIssueBody]
    builds: list[BuildBody]
    cells: list[CellBody]


def site_data(known: Known, now: datetime, address_of: Callable[[str], str | None]) -> bytes:
    """`address_of` is where the site has what an address of the application shows (None: nowhere)."""
    body = SiteDataBody(
        product_version=version("knowngood"),
        as_of=now,
        hardware=list(known.hardware),
        issues=[_issue(known, issue, address_of) for issue in known.issues.values()],
        builds=[
            (body := BuildBody.of(build)).model_copy(update={"url": address_of(body.url)})
            for build in shown_builds(known)
        ],
        cells=[_cell(cell, known.builds[cell.build], now) for cell in _cells(known)],
    )
    return body.model_dump_json().encode() + b"\n"


def _issue(known: Known, issue: Issue, address_of: Callable[[str], str | None]) -> SiteIssueBody:
    measured = [(known.builds[cell.build], cell) for cell in known.stored(issue.id)]
    classes = sorted({cell.hardware for _, cell in measured})
    body = SiteIssueBody(
        **vars(issue_body(issue)),
        history=history_bodies(issue, {hardware: known.history(issue.id, hardware) for hardware in classes}),
        held_claims=held_claim_bodies(issue, measured),
    )
    return body.model_copy(update={"url": address_of(body.url), "repro_url": address_of(body.repro_url) or ""})


def _cell(cell: Cell, build: Build, now: datetime) -> CellBody:
    """A workaround that was not run there has no finding: `workarounds` already says that it is unverified."""
    body = cell_body(replace(cell, evidence=""), build, now)
    findings = {
        id_: finding for id_, finding in body.workaround_findings.items() if cell.workarounds[id_].note != NOT_RUN
    }
    return body.model_copy(update={"workaround_findings": findings})


def _cells(known: Known) -> Iterator[Cell]:
    for issue in known.issues.values():
        for hardware in known.hardware:
            for build in shown_builds(known):
                cell = known.cell(issue, build, hardware)
                if cell.measured_at:
                    yield cell


def site_schema() -> bytes:
    schema = SiteDataBody.model_json_schema(mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Known Good, data", **schema}
    return json.dumps(schema, indent=2).encode() + b"\n"


def search_script(known: Known) -> bytes:
    """A script and no JSON: pages opened from disk may run the one, and may not fetch the other."""
    texts = {issue.id: _words(issue) for issue in known.issues.values()}
    return f"window.knownGoodTexts = {json.dumps(texts, ensure_ascii=False)};\n".encode()


def _words(issue: Issue) -> str:
    parts = (
        issue.id,
        issue.title,
        issue.title_zh,
        issue.component,
        issue.summary,
        issue.summary_zh,
        issue.signature.pattern,
        *(link.url for link in issue.links),
        *(text for workaround in issue.workarounds for text in (workaround.title, workaround.title_zh)),
    )
    return " ".join(" ".join(parts).lower().split())
