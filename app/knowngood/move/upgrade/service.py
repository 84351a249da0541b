"""The advice of `/upgrade` and its twin: the same parameters, checked in one place, and the same answer."""

from typing import Annotated
from urllib.parse import urlencode

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from knowngood.matrix.overview.selection import Names, Words, none_where_empty
from knowngood.move.upgrade.ranking import LEAST, UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, packages_of, read_upgrade
from knowngood.store.engine import Session, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.queries import load_durations
from knowngood.web.app_state import AppState

_LEAST = round(LEAST * 100)


class UpgradeQuery(BaseModel, populate_by_name=True):
    """From which build, for what is watched, under which constraints. What is left out constrains nothing."""

    start: Annotated[Words, Field(alias="from", description="The build one is on: its id, or the version of torch")] = (
        ""
    )
    watch: Annotated[Names, Field(description="Names of watch lists; where nothing is named, every issue is watched")]
    issues: Annotated[Names, Field(description="Issue ids, or the addresses of their reports; `all` for all of them")]
    component: Annotated[Names, Field(description="Every issue of these components")]
    package: Annotated[Names, Field(description="Every issue that needs these packages")]
    severity: Annotated[Words, Field(description="Every issue of this severity or a higher one")] = ""
    python: Annotated[
        Words, Field(description="The Python it must be for, such as 3.12; that of `from` unless said")
    ] = ""
    platform: Annotated[
        Words,
        Field(description="Where it runs: linux-x86_64 unless said, and the answer says so"),
    ] = ""
    cuda: Annotated[Words, Field(description="The CUDA it must be built for: 12.8, or a specifier like <13")] = ""
    driver: Annotated[Words, Field(description="The NVIDIA driver it must run on, such as 550.54.15")] = ""
    hardware: Annotated[Names, Field(description="Hardware classes that count; every measured one unless said")]
    pin: Annotated[Names, Field(description="Pins of torch, triton, python or cuda, such as triton==3.4.0")]
    has: Annotated[
        Names,
        Field(
            description="Packages that the environment has, such as torchao: issues of a package count only for who "
            "has it. `none` where it has none of them; left out, only those named by `issues` or `package` count"
        ),
    ]
    enough: Annotated[
        Annotated[int, Field(ge=_LEAST, le=100)] | None,
        BeforeValidator(none_where_empty),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": _LEAST, "maximum": 100}, {"const": ""}]}),
        Field(
            description="Of what does not fail there, the percentage that must be known to pass before a build is "
            "recommended; 80 unless said",
        ),
    ] = None

    @property
    def asked(self) -> UpgradeRequest:
        return UpgradeRequest(
            start=self.start,
            watch=tuple(self.watch),
            issues=tuple(self.issues),
            component=tuple(self.component),
            package=tuple(self.package),
            severity=self.severity,
            python=self.python,
            platform=self.platform,
            cuda=self.cuda,
            driver=self.driver,
            hardware=tuple(self.hardware),
            pin=tuple(self.pin),
            packages=packages_of(self.has),
            enough=self.enough,
        )

    def asking(self, **changes: object) -> str:
        """The query string of this question with `changes`; what stands at its default is left out."""
        changed = self.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True, by_alias=True)
        return f"?{urlencode(changed, doseq=True)}" if changed else ""


def times_of(state: AppState) -> Recorded:
    if state.site is not None:
        return state.site.recorded
    with reading(state.engine) as session:
        return load_times(session)


def load_times(session: Session) -> Recorded:
    return Recorded(load_durations(session), load_environment_s(session))


def advice_on(asked: UpgradeRequest, knowledge: Knowledge, state: AppState) -> UpgradeAdvice:
    """Raises BadField."""
    return advise(read_upgrade(asked, knowledge, times_of(state)), knowledge.known)
