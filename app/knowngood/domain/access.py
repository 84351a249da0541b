"""Who may do what: scopes, tokens as everybody may see them, and who did something. Secrets never come here."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from knowngood.domain.errors import KnownGoodError


class NotSignedIn(KnownGoodError):
    """Something needs a token, and none that is valid came with the request.

    `is_presented` tells a bad token from none at all: a program is told so by other words of the same status.
    """

    def __init__(self, message: str, *, is_presented: bool = False) -> None:
        super().__init__(message)
        self.is_presented = is_presented


class NotAllowed(KnownGoodError):
    """The token is valid, and may not do this; `scope` (where there is one) would do."""

    def __init__(self, message: str, scope: "Scope | None" = None) -> None:
        super().__init__(message)
        self.scope = scope


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    TRIAGE = "triage"
    ADMIN = "admin"


# `submit` stands alone: it is what a worker holds, and a worker's lost token should tell nobody anything where reads
# are closed. People who judge cells and keep watch lists read them first, so `triage` includes `read`.
INCLUDED: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.SUBMIT: frozenset({Scope.SUBMIT}),
    Scope.TRIAGE: frozenset({Scope.TRIAGE, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


def grants(scopes: Collection[Scope], wanted: Scope) -> bool:
    return any(wanted in INCLUDED[scope] for scope in scopes)


@dataclass(frozen=True)
class Actor:
    """Who does something, for the audit log and as the owner of things. `token` is empty at the command line."""

    name: str
    token: str = ""


@dataclass(frozen=True)
class Token:
    """A token without its secret. `id` is the public part that it is found by; `last_used_at` is right to a minute."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def actor(self) -> Actor:
        return Actor(self.name, self.id)

    def allows(self, wanted: Scope) -> bool:
        return grants(self.scopes, wanted)

    def ended(self, now: datetime) -> str:
        """Why it counts no more, in words; empty while it does."""
        if self.revoked_at is not None:
            return f"was revoked on {self.revoked_at:%Y-%m-%d}"
        if self.expires_at is not None and self.expires_at <= now:
            return f"expired on {self.expires_at:%Y-%m-%d}"
        return ""
