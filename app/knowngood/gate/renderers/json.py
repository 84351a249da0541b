"""A ruling as the decision document: what server, command line and snapshot print alike.

Plain dictionaries, since the command line client writes it too and has to start fast: a process that imports
this module took 173 ms of CPU, and 336 ms with a pydantic adapter for Ruling (medians of 30, 2026-11-21, 2 cores under
load; 139 and 268 ms at best). OpenAPI tells the shape of the ruling itself; a test holds the two together.
"""

import json
from datetime import UTC, datetime
from typing import Any

from knowngood.gate.decision import Reason, Ruling
from knowngood.gate.policy import Effect


def decision_body(ruling: Ruling, base: str = "") -> dict[str, Any]:
    """The document as what JSON is made of. `base` is the server's address, put before the paths of evidence."""
    return {
        "decision": ruling.decision.value,
        "why": ruling.why,
        "build": ruling.build,
        "asked": ruling.asked,
        "line": ruling.line,
        "nearest": list(ruling.nearest),
        "hardware": list(ruling.hardware),
        "counts": {effect.value: ruling.counts.get(effect, 0) for effect in Effect},
        "notes": list(ruling.notes),
        "refusals": [vars(one) for one in ruling.refusals],
        "decided_at": _written(ruling.decided_at),
        "known_at": _written(ruling.known_at),
        "reasons": [_reason_body(reason, base) for reason in ruling.reasons],
    }


def dump_decision(ruling: Ruling, base: str = "") -> str:
    """The document as JSON text. Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    body = decision_body(ruling, base)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def address(base: str, path: str) -> str:
    """The full address of a path below a server's; the path alone without a server, and a full address as it is."""
    return f"{base.rstrip('/')}{path}" if path.startswith("/") else path


def _reason_body(reason: Reason, base: str) -> dict[str, Any]:
    return {
        "issue": reason.issue,
        "title": reason.title,
        "component": reason.component,
        "severity": reason.severity.value,
        "silent": reason.silent,
        "build": reason.build,
        "hardware": reason.hardware,
        "verdict": reason.verdict.value,
        "effect": reason.effect.value,
        "why": reason.why,
        "measured_at": _written(reason.measured_at),
        "age_days": reason.age_days,
        "stale": reason.stale,
        "evidence_url": address(base, reason.evidence_url) if reason.evidence_url else None,
        "workarounds": [vars(workaround) for workaround in reason.workarounds],
        "applied": list(reason.applied),
        "ignored": reason.ignored,
        "fixed_in": reason.fixed_in,
        "first_fixed": reason.first_fixed,
        "fix_doubts": list(reason.fix_doubts),
        "is_new": reason.is_new,
        "assurance": reason.assurance.value,
        "grounds": [vars(ground) for ground in reason.grounds],
        "runs": reason.runs,
        "upstream": reason.upstream,
        "caveat": reason.caveat,
        "not_covered": list(reason.not_covered),
        "sign": reason.sign.value,
        "works_on": reason.works_on,
        "elsewhere": vars(reason.elsewhere) if reason.elsewhere else None,
    }


def _written(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None
