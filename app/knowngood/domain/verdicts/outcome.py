"""From one attempt's record to its outcome. `classify` is the only place where a record becomes an outcome."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from knowngood.domain.builds.build import Build, difference
from knowngood.domain.issue import (
    BASELINE,
    COSTS,
    OPERATOR_PROBE,
    Issue,
    Signature,
    SignatureKind,
    Suspect,
    default_device,
    digest,
    environment_request,
)
from knowngood.domain.measuring.isolation import Isolation, isolation_of
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message, Quoted, aside, either, joined, quoted
from knowngood.domain.timed_search import LIMIT_S, LINE_CHARACTERS, Searched, search
from knowngood.domain.verdicts.failure_text import raised_text, without_source
from knowngood.domain.verdicts.paired_time import STEP, Says, blocks_of, compared


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - a word of the glossary, no secret
    MATCH = "match"
    OTHER_FAILURE = "other_failure"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ENV_ERROR = "env_error"
    HARNESS_ERROR = "harness_error"
    NOT_APPLICABLE = "not_applicable"
    CANCELLED = "cancelled"


class Ending(StrEnum):
    """How the process of an attempt came to its end, as the keeper saw it."""

    RETURNED = "returned"  # the arm's function returned
    RAISED = "raised"  # the arm's function, or importing the script, raised
    EXITED = "exited"  # the process ended by itself before the function came back (os._exit, sys.exit at import)
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    OVER_MEMORY = "over_memory"
    OVER_PROCESSES = "over_processes"
    OVER_DISK = "over_disk"
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"  # the environment never came to be, or the process could not be made


class TroubleCode(StrEnum):
    """A fault of the environment or the host, found by a structured probe. Never guessed from text."""

    NO_BUILD = "no_build"
    INDEX_UNREACHABLE = "index_unreachable"
    PROVISION_FAILED = "provision_failed"
    WRONG_BUILD = "wrong_build"
    NO_INTERPRETER = "no_interpreter"
    NO_COMPILER = "no_compiler"
    NO_SETUPTOOLS = "no_setuptools"
    BROKEN_KERNELS = "broken_kernels"
    DISK_FULL = "disk_full"
    OUT_OF_MEMORY = "out_of_memory"
    DRIVER_TOO_OLD = "driver_too_old"
    NO_CODE_FOR_CARD = "no_code_for_card"
    NO_VECTOR_ISA = "no_vector_isa"
    GPU_LOST = "gpu_lost"
    GPU_BUSY = "gpu_busy"
    HARNESS = "harness"


@dataclass(frozen=True)
class Trouble:
    """`sentence` says what was found and what to do about it."""

    code: TroubleCode
    sentence: str


@dataclass(frozen=True)
class Raised:
    """An exception as the harness saw it. `kind` is the class's qualified name; `text` the traceback, at most 64 KiB.

    `marked` is `wrong_result` or `not_applicable` where the script raised its class of that name, else empty.
    """

    kind: str
    message: str
    text: str
    marked: str = ""


class ProofLevel(StrEnum):
    """How near to the suspect call the harness looked: at the call itself, or at the process around it."""

    CALL = "call"
    PROCESS = "process"


@dataclass(frozen=True)
class SeenPath:
    """A path that the harness saw: a function that was compiled (`frame`), a kernel that was launched, a thing that was
    exported; an `operator`, or `eager` for all that ran uncompiled, where a CUDA tensor entered it.

    `name` is the function's as Dynamo sees its frame (its qualified name; before Python 3.11 its last part), the
    kernel's, or the exported class's or function's. `ran` counts calls that came back, `raised` those that did not.
    `gave_up` counts errors in compiling it, `refused` how often Dynamo would not compile it whole. `objects` and
    `kernels` are what Inductor loaded, or wrote for Triton, while it was compiled or called. `on_cuda` counts how often
    a CUDA tensor was among the arguments, also in containers, of a call or of a frame that came to be compiled. Nobody
    looks where torch's default device was not set, nor did harnesses before 3.
    """

    kind: str
    name: str
    backend: str = ""
    compiled: int = 0
    ran: int = 0
    raised: int = 0
    gave_up: int = 0
    refused: int = 0
    objects: int = 0
    kernels: int = 0
    on_cuda: int = 0


@dataclass(frozen=True)
class RunRecord:
    """Raw evidence of one attempt, as measured; nothing in it is a judgement.

    `probes` counts what the harness saw happen (`inductor_cpp`: graphs compiled, ...); `observed` is what the arm
    reported; `imported` what the process imported. Seconds are wall time: `wall_s` of the whole process, `own_s` from
    after `import torch` to the last observation. `peak_bytes` is the largest resident set of the process tree.
    `sandbox` names what isolated it (see isolation), and `forked` where it came from a parent that had imported torch.
    `harness` is which one made it (0: one that looked at the process alone), and `seen` the paths that it saw gone.
    """

    ending: Ending
    exit_code: int | None = None
    signal: str = ""
    observed: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, int] = field(default_factory=dict)
    raised: Raised | None = None
    trouble: Trouble | None = None
    imported: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 0.0
    own_s: float = 0.0
    peak_bytes: int = 0
    threads: int = 0
    sandbox: tuple[str, ...] = ()
    log_cut_bytes: int = 0
    harness: int = 0
    seen: tuple[SeenPath, ...] = ()

    @property
    def proof(self) -> ProofLevel:
        return ProofLevel.CALL if self.harness else ProofLevel.PROCESS

    @property
    def isolation(self) -> Isolation:
        """How far it was shut off from its host."""
        return isolation_of(self.sandbox)


@dataclass(frozen=True)
class Judgement:
    """An outcome with its reason and, where one matched, the line of the evidence that did.

    `searched` is the result of the search for the signature (None: no search was needed).
    """

    outcome: Outcome
    reason: Message
    line: str = ""
    searched: Searched | None = field(default=None, compare=False)


_NO_MODULE = re.compile(r"No module named '(?P<root>[A-Za-z0-9_]+)")
_ABSENT = frozenset({TroubleCode.NO_BUILD, TroubleCode.NO_CODE_FOR_CARD})
_NO_SPACE = "[Errno 28]"


def classify(  # noqa: PLR0913 - what an outcome rests on
    record: RunRecord,
    issue: Issue,
    arm: str,
    build: Build,
    log: str,
    earlier_search: Searched | None = None,
    *,
    hardware: str = CPU_CLASS,
    limit_s: float = LIMIT_S,
) -> Judgement:
    """Derive the outcome of one attempt on a hardware class.

    `log` is what the process wrote, as kept. `earlier_search` is the result of an earlier search for a signature in
    this record and log; while the signature is the same, the search is not repeated. Total: every record has an
    outcome, nothing is raised. Three rules decide arguments: a failure that does not carry the issue's own text is
    never the issue, trouble found by a structured probe is never the issue even where the text matches, and what names
    no device says nothing about a GPU unless a CUDA tensor was seen to enter it.
    Source: docs/decisions/003-evidence-is-stored-and-verdicts-are-derived.md; of devices
    docs/decisions/016-inference-needs-measured-agreement.md.
    """
    return (
        _never_measured(record)
        or _timed(record, issue, arm)
        or _wrong_environment(record, issue, build)
        or _returned(record, issue, arm, hardware)
        or _trouble(record)
        or _off_the_gpu(record, issue, arm, hardware)
        or _failed(record, issue, _searched(record, issue, log, earlier_search, limit_s))
    )


_SEARCH = "3"  # raise it where a signature is looked for in other texts than before: kept results are of no use then
_DECIDED_WITHOUT_LOG = frozenset({Ending.RETURNED, Ending.CANCELLED, Ending.NOT_STARTED})


def heeds_log(record: RunRecord, signature: Signature) -> bool:
    """Whether `classify` may look at the log; if not, its answer is the same whatever the process wrote."""
    return signature.searches_log and record.ending not in _DECIDED_WITHOUT_LOG


def _never_measured(record: RunRecord) -> Judgement | None:
    if record.ending is Ending.CANCELLED:
        return Judgement(Outcome.CANCELLED, Message("cancelled"))
    if record.trouble and record.trouble.code in _ABSENT:
        return Judgement(Outcome.NOT_APPLICABLE, quoted(record.trouble.sentence))
    if record.raised and record.raised.marked == "not_applicable":
        return Judgement(Outcome.NOT_APPLICABLE, quoted(record.raised.message))
    if record.trouble and record.trouble.code is TroubleCode.HARNESS:
        return Judgement(Outcome.HARNESS_ERROR, quoted(record.trouble.sentence))
    if record.ending is Ending.NOT_STARTED:
        if record.trouble:
            return Judgement(Outcome.ENV_ERROR, quoted(record.trouble.sentence))
        return Judgement(Outcome.HARNESS_ERROR, Message("not_started"))
    return None


def _timed(record: RunRecord, issue: Issue, arm: str) -> Judgement | None:
    if not arm.startswith(COSTS):
        return None
    if not issue.is_timed:
        return Judgement(Outcome.PASS, Message("timed"))
    blocks = blocks_of(record.observed)
    if len(blocks) < STEP:
        return Judgement(Outcome.HARNESS_ERROR, Message("observed_nothing"))
    found = compared(blocks, issue.slower_from)
    outcome = {Says.COSTS: Outcome.MATCH, Says.CANNOT_SAY: Outcome.ENV_ERROR}.get(found.says, Outcome.PASS)
    return Judgement(
        outcome, found.in_words("slower" if found.is_same else "unquiet", Message("pairs", n=found.cost.pairs))
    )


def _wrong_environment(record: RunRecord, issue: Issue, build: Build) -> Judgement | None:
    """Check the versions that were imported, not those that were requested."""
    if not record.imported:
        if record.trouble:
            return Judgement(Outcome.ENV_ERROR, quoted(record.trouble.sentence))
        ended = Message("torch_not_reached", ending=record.ending.value)
        raised = record.raised and Message("torch_not_imported", text=Quoted(record.raised.message))
        return Judgement(Outcome.ENV_ERROR, raised or ended)
    mismatch = difference(build, record.imported, environment_request(issue, build).pins)
    return Judgement(Outcome.ENV_ERROR, Message("wrong_build", said=mismatch)) if mismatch else None


def _off_the_gpu(record: RunRecord, issue: Issue, arm: str, hardware: str) -> Judgement | None:
    called = _Called.by(arm, record, issue)
    if not default_device(issue, hardware) or any(path.on_cuda for path in called.paths):
        return None
    names = called.suspect.names
    reason = Message("off_the_gpu", names=either(names)) if names else Message("arm_off_the_gpu", variant=arm)
    return Judgement(Outcome.HARNESS_ERROR, reason)


def _returned(record: RunRecord, issue: Issue, arm: str, hardware: str) -> Judgement | None:
    if record.ending is not Ending.RETURNED:
        return None
    if not record.observed:
        return Judgement(Outcome.HARNESS_ERROR, Message("observed_nothing"))
    if off := _off_the_gpu(record, issue, arm, hardware):
        return off
    wanted = issue.arm(arm).exercises
    called = _Called.by(arm, record, issue)
    counts = called.counts if record.proof is ProofLevel.CALL else record.probes
    doubt = called.doubt if record.proof is ProofLevel.CALL else None
    missing = [probe for probe in wanted if not counts.get(probe)]
    if doubt or missing:
        why = doubt or aside(Message("not_exercised", names=tuple(missing)), called.seen)
        return Judgement(Outcome.HARNESS_ERROR, Message("proved_nothing", said=why))
    proof = tuple(f"{probe.removeprefix(OPERATOR_PROBE)} {counts[probe]}x" for probe in wanted)
    by = called.backends(wanted)
    return Judgement(
        Outcome.PASS, Message("passed_proven", proof=Message("proof_by", proof=proof, names=by) if by else proof)
    )


_KINDS = {"dynamo_graph": "frame", "triton_launch": "kernel", "export": "export"}
_INDUCTOR = "inductor"
_NAMED = 5


@dataclass(frozen=True)
class _Called:
    """The code that ran compiled during the suspect call. Where the issue names no function, any that ran will do."""

    record: RunRecord
    suspect: Suspect

    @classmethod
    def by(cls, arm: str, record: RunRecord, issue: Issue) -> "_Called":
        """The suspect is the baseline's alone."""
        return cls(record, issue.suspect if arm == BASELINE else Suspect())

    @property
    def paths(self) -> list[SeenPath]:
        return [path for path in self.record.seen if self._is_suspect(path)]

    def _is_suspect(self, path: SeenPath) -> bool:
        names, backends = self.suspect.names, self.suspect.backends
        if path.kind == "frame" and path.backend and backends and path.backend not in backends:
            return False
        return not names or any(self._is_called(path, name) for name in names)

    def _is_called(self, path: SeenPath, name: str) -> bool:
        is_last_part = self._has_last_parts and path.kind == "frame"
        return path.name == (name.rpartition(".")[2] if is_last_part else name)

    @property
    def _has_last_parts(self) -> bool:
        """Code has no qualified name before Python 3.11."""
        python = self.record.imported.get("python", "")
        return python.startswith(("3.8.", "3.9.", "3.10."))

    def _ran(self, path: SeenPath) -> int:
        return path.ran + (path.raised + path.gave_up + path.refused if self.suspect.raises else 0)

    @property
    def doubt(self) -> Message | None:
        """Why the baseline's return says nothing about the suspect call; None where there is no doubt."""
        if not self.suspect.names:
            return None
        names = either(self.suspect.names)
        if not any(self._ran(path) for path in self.paths):
            others = tuple(path.name for path in self.record.seen if path.ran)[:_NAMED]
            failed = any(path.gave_up for path in self.paths)
            doubt = Message("not_compilable" if failed else "not_compiled", names=names)
            return aside(doubt, [Message("seen", names=others)] if others else [])
        if self.suspect.raises:
            return None
        if any(path.gave_up for path in self.paths):
            return Message("went_on_without", names=names)
        if any(path.raised for path in self.paths):
            return Message("raised_compiled", names=names)
        return None

    @property
    def seen(self) -> list[Message]:
        """The compiled frames that were seen nevertheless, for the person who mends the row."""
        frames = [
            Message(
                "frame_seen",
                name=path.name,
                backend=path.backend or Message("unnamed_backend"),
                n=self._ran(path),
                objects=path.objects,
                kernels=path.kernels,
            )
            for path in self.paths[:_NAMED]
            if path.kind == "frame"
        ]
        return [Message("seen", names=joined("then", frames))] if frames else []

    @property
    def _is_inductors_alone(self) -> bool:
        """Whether Inductor compiled nothing else in this process: then a backward pass's objects, which are made when
        that is first called, are the suspect's too.
        """
        inductor_paths = [path for path in self.record.seen if path.backend == _INDUCTOR]
        return (
            bool(inductor_paths)
            and all(path in self.paths for path in inductor_paths)
            and any(map(self._ran, inductor_paths))
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """The probes, those of compiled code by what ran of it; the others are counted while the arm runs."""
        ran = [path for path in self.paths if self._ran(path)]
        by_kind = {probe: sum(self._ran(path) for path in ran if path.kind == kind) for probe, kind in _KINDS.items()}
        made = {
            "inductor_cpp": sum(path.objects for path in ran),
            "inductor_triton": sum(path.kernels for path in ran),
        }
        if self._is_inductors_alone:
            made = {probe: count or self.record.probes.get(probe, 0) for probe, count in made.items()}
        return {**self.record.probes, **by_kind, **made}

    def backends(self, wanted: Collection[str]) -> tuple[str, ...]:
        """The backends (`aot_eager`) where Dynamo's graphs are the proof: what was never asked is seen by them."""
        names = {path.backend for path in self.paths if path.kind == "frame" and path.ran and path.backend}
        return tuple(sorted(names)) if "dynamo_graph" in wanted else ()


_OVER = {
    Ending.OVER_MEMORY: Message("over_memory"),
    Ending.OVER_PROCESSES: Message("over_processes"),
    Ending.OVER_DISK: Message("over_disk"),
}


def _trouble(record: RunRecord) -> Judgement | None:
    """Infrastructure: never the issue, never a pass."""
    if record.trouble:
        return Judgement(Outcome.ENV_ERROR, quoted(record.trouble.sentence))
    if record.ending in _OVER:
        return Judgement(Outcome.ENV_ERROR, _OVER[record.ending])
    if record.ending is Ending.SIGNALLED and record.signal == "SIGKILL":
        return Judgement(Outcome.ENV_ERROR, Message("killed"))
    raised = record.raised
    if raised is None:
        return None
    name = raised.kind.rpartition(".")[2]
    if name in {"MemoryError", "OutOfMemoryError"}:
        return Judgement(Outcome.ENV_ERROR, Message("out_of_memory", text=Quoted(_first_line(raised.message))))
    if name == "OSError" and raised.message.startswith(_NO_SPACE):
        return Judgement(Outcome.ENV_ERROR, Message("disk_full", text=Quoted(_first_line(raised.message))))
    return None


def search_key(issue: Issue) -> str:
    """The key under which the result of a search for an issue's signature is stored: everything that decides where to
    search, apart from the attempt.
    """
    signature = issue.signature
    return _search_key(signature.kind, signature.pattern, issue.script, log=signature.log)


@lru_cache(maxsize=4096)
def _search_key(kind: SignatureKind, pattern: str, script: str, *, log: bool) -> str:
    return digest("\0".join((_SEARCH, kind, pattern, str(log), script)))


def _searched(
    record: RunRecord, issue: Issue, log: str, earlier_search: Searched | None, limit_s: float
) -> Searched | None:
    """The result of the search for the signature; None where this failure cannot be the issue's.

    An empty pattern (allowed for wrong results and signals) is carried by the failure itself.
    """
    signature = issue.signature
    if not _is_of_its_kind(record, signature):
        return None
    raised = record.raised
    if not signature.pattern:
        return Searched("", _first_line(raised.message) if raised else record.signal)
    key = search_key(issue)
    if earlier_search and earlier_search.of == key:
        return earlier_search
    return search(signature.pattern, _texts(record, issue, log), limit_s, key)


def _texts(record: RunRecord, issue: Issue, log: str) -> Iterator[str]:
    if record.raised:
        yield raised_text(record.raised.message, record.raised.text, issue.script)
    if issue.signature.searches_log:
        yield without_source(log, issue.script)


def _is_of_its_kind(record: RunRecord, signature: Signature) -> bool:
    match signature.kind:
        case SignatureKind.WRONG_RESULT:
            return record.raised is not None and record.raised.marked == "wrong_result"
        case SignatureKind.MESSAGE:
            return record.ending in {Ending.RAISED, Ending.SIGNALLED} or (
                record.ending is Ending.EXITED and record.exit_code != 0
            )
        case SignatureKind.SIGNAL:
            return record.ending is Ending.SIGNALLED and record.signal in signature.signals
        case SignatureKind.HANG:
            return record.ending is Ending.TIMED_OUT
        case SignatureKind.BIGGER | SignatureKind.MORE_WORK | SignatureKind.SLOWER:  # never told by how a process ends
            return False


def _failed(record: RunRecord, issue: Issue, searched: Searched | None) -> Judgement:
    """Judge whether a failure is the issue's. One that could not be compared with the signature in time is neither."""
    if searched and searched.is_late:
        return Judgement(Outcome.TIMEOUT, Message("searched_too_long"), searched=searched)
    if searched and searched.line is not None:
        return Judgement(Outcome.MATCH, Message("matched"), searched.line, searched)
    return replace(_failure(record, issue), searched=searched)


def _failure(record: RunRecord, issue: Issue) -> Judgement:
    match record.ending:
        case Ending.TIMED_OUT:
            return Judgement(Outcome.TIMEOUT, Message("did_not_end", seconds=f"{issue.timeout_s:g}"))
        case Ending.SIGNALLED:
            return Judgement(Outcome.CRASH, Message("died", signal=record.signal))
        case Ending.EXITED if record.exit_code == 0:
            return Judgement(Outcome.HARNESS_ERROR, Message("exited_early"))
        case Ending.EXITED:
            return Judgement(Outcome.OTHER_FAILURE, Message("exited", n=str(record.exit_code)))
        case _:
            return _other_exception(record.raised)


def _other_exception(raised: Raised | None) -> Judgement:
    if raised is None:
        return Judgement(Outcome.HARNESS_ERROR, Message("ended_without_word"))
    absent = _NO_MODULE.match(raised.message) if raised.kind.endswith("ModuleNotFoundError") else None
    if absent and absent["root"] != "torch":
        return Judgement(Outcome.ENV_ERROR, Message("package_missing", name=absent["root"]))
    text = f"{raised.kind}: {_first_line(raised.message)}"
    return Judgement(Outcome.OTHER_FAILURE, Message("failed_otherwise", text=Quoted(text)))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:LINE_CHARACTERS]
