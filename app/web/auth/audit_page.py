"""`/audit`: who changed tokens, watch lists, results or what people say of cells. For administrators."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.app.domain.access import Scope
from knowngood.app.store.audit_log import AuditRow, load_audit
from knowngood.app.store.engine import reading
from knowngood.app.web.auth.principal import require
from knowngood.app.web.auth.sign_in_page import led_to_sign_in
from knowngood.app.web.html.i18n import exact
from knowngood.app.web.request_context import Context, uncached
from knowngood.app.web.urls import API

router = APIRouter(include_in_schema=False)

SHOWN = 100

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,15}\+00:00")


@dataclass(frozen=True)
class AuditLine:
    """`details` are what the row holds beside its subject, as `name: value`."""

    row: AuditRow
    details: str


@dataclass(frozen=True)
class AuditPage:
    """`older_address` is empty on the last page."""

    lines: tuple[AuditLine, ...]
    older_address: str
    is_newest: bool
    json_address: str


@router.get("/audit")
def audit(context: Context, request: Request, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
    if context.principal.token is None:
        return led_to_sign_in(context)
    require(request, Scope.ADMIN)
    with reading(context.state.engine) as session:
        rows = load_audit(session, SHOWN + 1, before)
    shown = rows[:SHOWN]
    page = AuditPage(
        lines=tuple(AuditLine(row, _details(row.data)) for row in shown),
        older_address=f"/audit?before={shown[-1].id}" if len(rows) > SHOWN else "",
        is_newest=before is None,
        json_address=f"{API}/audit" + (f"?before={before}" if before else ""),
    )
    return uncached(context.page("audit.html", page))


def _details(data: Mapping[str, object]) -> str:
    said = {name: _told(value) for name, value in data.items()}
    return "; ".join(f"{name}: {value}" for name, value in said.items() if value)


def _told(value: object) -> str:
    """Whatever an entry holds: entries of one action have lists, of ids or of clashes, those of another a span of times
    by its parts.
    """
    match value:
        case list():
            return ", ".join(map(_told, value))
        case Mapping():
            return ", ".join(f"{name} {told}" for name, part in value.items() if (told := _told(part)))
        case None:
            return ""
        case str() if _TIME.fullmatch(value):
            return exact(datetime.fromisoformat(value))
        case _:
            return str(value)
