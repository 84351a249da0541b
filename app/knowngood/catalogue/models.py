"""The shape of `issue.toml` and `builds.toml`: models that refuse what they do not know, and the words for a refusal.

Each field's docstring is its description in the published JSON Schema. Rules that join two fields, or the document with
its script, stand in `issue_rules.py` and `script_rules.py`.
"""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from knowngood.catalogue.field_types import (
    RELEASE_FORM,
    Body,
    Capability,
    CudaVersion,
    FrameName,
    FunctionName,
    GitRevision,
    Line,
    LocalVersion,
    Name,
    PackageName,
    Params,
    Probe,
    PythonVersion,
    RequirementText,
    SignalName,
    Specifier,
    Summary,
    Text,
    Url,
    VectorIsa,
    VersionText,
)
from knowngood.catalogue.warnings.codes import WarningCode
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.issue import (
    AS_A_RULE,
    Comparison,
    Culprit,
    Device,
    Fidelity,
    LinkKind,
    Severity,
    SignatureKind,
    Status,
)
from knowngood.serialization import toml_models
from knowngood.serialization.toml_models import STRICT, Document, Finding

Probes = Annotated[list[Probe], Field(min_length=1)]

_E = TypeVar("_E", bound=StrEnum)
_Word = Annotated[_E, Field(strict=False)]
"""The models are strict; an enum is the one thing TOML cannot hold, so that its word is taken for it."""


class _Table(BaseModel):
    model_config = STRICT


class LinkTable(_Table):
    kind: _Word[LinkKind]
    """What it shows: the report, the fix, or other evidence. At least one link of an issue is its report."""
    url: Url
    title: Line
    state: Literal["", "open", "closed"] = ""
    """What upstream says of the thread; a claim too: a closed thread is no fixed wheel."""
    seen: date | None = None
    """The day on which `state` was read."""


class ClaimTable(_Table):
    text: Text
    """What is claimed, in one sentence. Claims are shown beside what was measured and never counted."""
    source: Text
    """Who says so: a thread with its number, a release note, an article with its title."""
    dated: date | None = None
    """The day it was said, as a TOML date."""
    url: Url | None = None
    says: Literal["", "affected", "fixed", "cure", "cause"] = ""
    """What kind of claim it is, where it is one of these."""
    about: Specifier = ""
    """Releases of torch that it speaks of, such as "==2.6.0": measurements there can contradict it."""
    workaround: str = ""
    """The workaround that a "cure" is: measurements of it can contradict the claim."""


class RequiresTable(_Table):
    device: _Word[Device] = Device.CPU
    """Where it runs. A CPU issue is measured under the CPU class, also on GPU hosts; "any" is for a fault in code that
    is the same on every device, with no path of Inductor's, Triton's or XLA's."""
    torch: Specifier = ""
    """Versions of torch on which the issue can exist at all, such as ">=2.1"."""
    python: Specifier = ""
    """Versions of Python on which it can, such as "<3.12"."""
    compute_capability: Capability | None = None
    """The least compute capability of the GPU, such as "7.0"."""
    package: PackageName = ""
    """The package that the issue concerns, such as "torchao": an environment without it does not have the issue."""
    vector_isas: list[VectorIsa] = []
    """The vector ISAs of the CPU that its result depends on, "avx2" and "avx512": it is measured with each."""


class ReleasePackagesTable(_Table):
    requires: list[RequirementText]
    """What replaces the issue's packages on this release of torch."""


def _as_written(schema: JsonDict) -> None:
    """Show what is written, `[packages."2.7"]`, and not the field it is read into."""
    properties = schema["properties"]
    per_release = properties.pop("per_release") if isinstance(properties, dict) else None
    if isinstance(per_release, dict):
        schema["patternProperties"] = {RELEASE_FORM: per_release["additionalProperties"]}


class PackagesTable(_Table):
    model_config = ConfigDict(json_schema_extra=_as_written)

    requires: list[RequirementText] = []
    """Extra packages. `{torch}` becomes the release of torch, without its local part."""
    no_deps: list[Text] = []
    """Names out of `requires` that are installed without their dependencies."""
    imports: list[Text] = []
    """Modules of these packages whose names do not follow from the packages' names, such as "fla"."""
    mutates: bool = False
    """The script edits installed files, and so needs an environment of copies instead of hard links."""
    per_release: dict[str, ReleasePackagesTable] = {}

    @model_validator(mode="before")
    @classmethod
    def _gather_releases(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        if "per_release" in data:
            raise ValueError('"per_release" is not written; write a table such as [packages."2.7"]')
        releases = {key: value for key, value in data.items() if re.match(RELEASE_FORM, str(key))}
        rest = {key: value for key, value in data.items() if key not in releases}
        return {**rest, "per_release": releases} if releases else rest


class SignatureTable(_Table):
    kind: _Word[SignatureKind]
    """How the issue fails: by a message, a wrong result, a signal, or a hang; or the right result takes more memory
    (`bigger`), more compilations, kernels or copies (`more_work`) or longer (`slower`) than the control's."""
    pattern: str = ""
    """A regular expression searched in what was raised, causes included; the same as SIGNATURE in the script."""
    log: bool = False
    """For kind `message`: it is searched in the log too, because only the log has it."""
    signals: list[SignalName] = []
    """For kind `signal`: the signals that end the process."""


class WaiverTable(_Table):
    warning: _Word[WarningCode]
    """The warning of `knowngood check` that this row is right in spite of, such as "broad-except"."""
    reason: Text
    """Why it cannot fool a verdict here."""
    about: str = ""
    """Words of the warning that are meant; empty means every warning of this kind."""


class ProofTable(_Table):
    """The proof that a pass of the baseline is one, beside what it `exercises`. Read when verdicts are derived."""

    suspect: list[FrameName] = []
    """The functions that must have run compiled, such as "Model.forward", as Dynamo sees their frames; for Triton the
    kernels, for `export` the class or function. One of them is enough; none named means that any will do."""
    backends: list[Line] = []
    """The backends of torch.compile that get to the suspect path, where the probes do not tell: what any other compiled
    proves nothing."""
    raises: bool = False
    """Where the issue is not, the suspect call raises, as it should, and the script goes on."""


class VariantTable(_Table):
    id: Name
    title: Line
    params: Params = {}
    """Keyword arguments for the arms' functions."""
    arms: list[str] = []
    """The arms it applies to; none named means all of them."""
    why_not: str = ""
    """Why `arms` leaves workarounds out: why they cannot be tried with this variant."""
    reported: bool = False
    """This variant is what the report itself ran; at most one is."""


class LeftTable(_Table):
    what: Line
    """What the row's text says is wrong too, in one sentence."""
    variant: str = ""
    """The variant that measures it."""
    why_not: str = ""
    """Why none does: out of scope, cannot be scripted, or another row. A pass then says what it does not cover."""
    applies_to: Specifier = ""
    """Versions of torch it is said of; empty means all."""
    what_zh: str = ""


class ObservedTable(_Table):
    compare: _Word[Comparison] = AS_A_RULE.compare
    """How it is held against the control's: "equal" text, "close" numbers in equal words, not at all ("ignore"), or as
    an amount that may be "at_most" so much, for an issue of kind `bigger`, `more_work` or `slower`."""
    rtol: Annotated[float, Field(ge=0, le=1)] | None = None
    """For "close": how far a number may be from the control's, as a part of that; whole numbers have no such room. For
    "at_most": how far it may lie above it; 0.03 of memory, none of work and 0.05 of time, unless said."""
    atol: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """For "close": how far it may be besides, whole numbers too. For "at_most": how far it may lie above at the least;
    32 MiB of memory and none of work, unless said."""
    reason: Text
    """Why it is compared so, for whoever reads the result."""
    arms: list[str] = []
    """The arms that this is for, where a workaround changes the value by design; none named means all of them."""


class WorkaroundTable(_Table):
    id: FunctionName
    """The arm's id: the script defines a function of this name."""
    title: Line
    body: Body
    """Markdown with the snippet a user pastes."""
    trade_off: Text
    """What it costs: time, memory, precision, upkeep."""
    applies_to: Specifier = ""
    """Versions of torch it is for; empty means all."""
    exercises: Probes
    """What must be seen to happen for a pass of this workaround to count."""
    decoy: bool = False
    """It looks like a workaround and is none: listed so that nobody loses time with it."""
    title_zh: str = ""
    body_zh: str = ""
    trade_off_zh: str = ""


class IssueFile(_Table):
    """One upstream issue of the Known Good catalogue. The folder's name is its id."""

    title: Line
    """What goes wrong, in one line."""
    summary: Summary
    """Markdown: what goes wrong, where, for whom, and why."""
    component: Line
    """The part of the stack, such as "Inductor C++"; the matrix groups its rows by it."""
    culprit: _Word[Culprit]
    """The layer that has to be mended."""
    severity: _Word[Severity]
    silent: bool
    """Wrong numbers without an error."""
    fidelity: _Word[Fidelity]
    """How near the script is to the report: the reporter's own code, cut down, or made anew from its description."""
    status: _Word[Status]
    """A bug, a limitation upstream states, or a mistake in how something is used."""
    reported_on: date
    """The day of the first report: a release is judged by what could have been reported about it."""
    exercises: Probes
    """What must be seen to happen for a pass of the baseline to count: the suspect path."""
    control_exercises: Probes = ["eager"]
    """The same for the control arm."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)]
    """Seconds an arm may take, the import of torch and the compilation included."""
    link: Annotated[list[LinkTable], Field(min_length=1)]
    claim: list[ClaimTable] = []
    requires: RequiresTable = Field(default_factory=RequiresTable)
    packages: PackagesTable = Field(default_factory=PackagesTable)
    signature: SignatureTable
    proof: ProofTable = Field(default_factory=ProofTable)
    """What a pass of the baseline must show beside that."""
    variant: list[VariantTable] = []
    left: list[LeftTable] = []
    """What is left wrong: each is measured by a variant, or says why not."""
    workaround: list[WorkaroundTable] = []
    observed: dict[Line, ObservedTable] = {}
    """By its name in what arms return: a value that is not compared as usual, which is close within 0.001 of itself."""
    waiver: list[WaiverTable] = []
    """Warnings of `knowngood check` that the row is right in spite of, each with a reason."""
    title_zh: str = ""
    summary_zh: str = ""
    default: bool = False
    """One of the few that `knowngood up` measures anew on the machine it starts on; where none is, it measures all."""
    smoke: bool = False
    """It shows that the compiler works at all: where it passes, what one Python said may stand in for another."""


class BuildTable(_Table):
    torch: VersionText
    """The version asked of the index, such as "2.6.0"."""
    local: LocalVersion = ""
    """The local part of the version as imported, such as "cu124"; empty where the import has none."""
    cuda: CudaVersion | None = None
    """`torch.version.cuda`; left out for a CPU wheel."""
    triton: VersionText | None = None
    """That torch's own pin of Triton; left out where the wheel has none."""
    with_triton: VersionText | None = None
    """A Triton other than the pin, for a deliberate mismatch."""
    python: PythonVersion = DEFAULT_PYTHON
    pythons: list[PythonVersion] = []
    """Other Pythons this build is measured with: each is one more build, everything else alike, never a default one."""
    origin: Name
    """Where the wheels come from: "default" (the default index) or a torch backend such as "cu126" or "cpu"."""
    as_of: date
    """Packages newer than this day are not used: what is resolved is what that release's users had."""
    released: date | None = None
    default: bool = False
    """Part of the small set that is measured first."""
    note: str = ""
    git: GitRevision | None = None
    """`torch.version.git_version`, checked where both are known; left out where nobody has read it."""


class ReleasedPackageTable(_Table):
    """A package whose releases are each built for one release of torch, and beside no other."""

    built_for: Literal["minor"]
    """The part of torch's version that has to be the same: 2.9.0 goes with 2.9.0 and 2.9.1."""
    claim: ClaimTable
    """Who says so. It is not measured."""
    asked: date
    """The day on which PyPI was asked for `releases`."""
    releases: dict[VersionText, list[PythonVersion]]
    """Its releases there (no candidates), each with the Pythons that it has wheels for."""


class BuildsFile(_Table):
    """The builds of the Known Good catalogue: one table for each column of the matrix."""

    build: list[BuildTable] = []
    packages: dict[PackageName, ReleasedPackageTable] = {}


def read_document(model: type[Document], data: Mapping[str, Any]) -> tuple[Document | None, list[Finding]]:
    """Check `data` against `model`: the value, or what is wrong with each key."""
    return toml_models.read_document(model, data, unwritten={"per_release"})
