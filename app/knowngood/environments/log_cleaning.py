"""A paste made readable: the log without its wrapping, and the versions that it tells of.

Signatures were written against plain text. What people paste comes out of terminals, schedulers, trackers and log
collectors, each of which adds something of its own to every line; here that is taken off again. Nothing is kept.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from knowngood.domain.builds.platforms import platform_of_gpus
from knowngood.domain.hardware_names import hardware_named
from knowngood.environments.platform_reading import line_around, platforms_in
from knowngood.environments.python_markers import pythons_of
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment
from knowngood.environments.source import MOST_PACKAGES, Source, canonical

LONGEST = 1_000_000
"""Characters of a paste that are read; of a longer one the beginning and the end, which name versions and causes."""

_LONGEST_LINE = 4_000
_MOST_LINES = 60_000  # that are read; of more, again the beginning and the end
_HEAD = LONGEST // 4
_DEEPEST = 8  # of wrappings around one line: a rank, a time, a level, ...
_LONGEST_LABEL = 400  # characters before a JSON record on its line
_MOST_STRINGS = 10_000  # of one JSON document

_COLOUR = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\[\d{1,3}(?:;\d{1,3}){0,4}m"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_LINE_END = re.compile(r"\r\n?|\n|\u2028|\u2029")

_WRAPPING = re.compile(
    r"""(?:
      (?:\ {0,3}>)+(?:\ |$)                                                       # > quoted in a mail or an issue
    | E\ {3,}                                                                     # pytest
    | [\u2502\u2503]\ ?                                                           # the box around rich's tracebacks
    | \[(?:rank|default)?\d{1,5}\]:\ ?                                            # [rank0]: of torchrun
    | (?:rank|default)\d{1,5}:\ ?
    | \[\d{1,5},\d{1,5}\](?:<std(?:err|out)>)?:\ ?                                # mpirun
    | \([A-Za-z_][^()\n]{0,60}\bpid=\d{1,9}[^()\n]{0,60}\)\ ?                     # (Worker pid=12, ip=...) of Ray, vLLM
    | [\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|\ ?[+-]\d\d:?\d\d|\ UTC)?[\])]?\ ?(?:[|:-]\ )?
    | \[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?\ (?:[|:-]\ )?
    | [IWEFV]\d{4}\ \d\d:\d\d:\d\d\.\d{1,9}\ +\d+\ [^\s\]]{1,200}\](?:\ \[[^\]\s]{1,40}\]){0,3}\ ?   # glog
    | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S{1,80}\ \S{1,80}\[\d{1,9}\]:\ ?  # syslog
    | (?:\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?)(?:\ \d\d-\d\d\ \d\d:\d\d:\d\d(?:\.\d{1,9})?)?
      (?:\ *\[[\w./-]{1,80}:\d{1,6}\])?(?:\ ?[:|])?\ +
    | std(?:err|out)\ [FP]\ ?                                                     # container runtimes
    | [A-Za-z][\w.-]{0,60}\ +\|\ ?                                                # docker compose
    )""",
    re.VERBOSE,
)
_BOX_END = re.compile(r"(?<!\s)\s*[\u2502\u2503]\s*$")  # from its beginning alone: a run of spaces is long


@dataclass(frozen=True)
class CleanedPaste:
    """`lines` are what is searched; `places` says for each of them which line of the paste it stood in, from 1.

    `left_out` counts the characters of the middle that were not read.
    """

    lines: tuple[str, ...]
    places: tuple[int, ...]
    left_out: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class VersionMention:
    """A version that a paste tells of: `name` is torch, CUDA, ROCm, XPU, Triton, Python, GPU, driver, platform, or what
    was seen to work or not (`usable CUDA`, `working Triton`); `line` is where. CUDA is `None` where torch is said to be
    built without it.
    """

    name: str
    value: str
    line: str


def read_paste(text: str) -> CleanedPaste:
    """Take off what terminals, schedulers and trackers put around a log. Total: anything is a paste."""
    left_out = max(0, len(text) - LONGEST)
    if left_out:
        text = f"{text[:_HEAD]}\n{text[len(text) - LONGEST + _HEAD :]}"
    unfolded = list(_unfolded(text))
    if len(unfolded) > _MOST_LINES:
        left_out += sum(len(line) + 1 for _, line in unfolded[_MOST_LINES // 4 : -_MOST_LINES * 3 // 4])
        unfolded = unfolded[: _MOST_LINES // 4] + unfolded[-_MOST_LINES * 3 // 4 :]
    return CleanedPaste(tuple(_plain(line) for _, line in unfolded), tuple(place for place, _ in unfolded), left_out)


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    whole = _json_strings(text)
    if whole:
        for string in whole:
            for line in _LINE_END.split(string):
                yield 1, line
        return
    for place, line in enumerate(_LINE_END.split(text), start=1):
        for part in _parts_of(line):
            yield place, part


def _parts_of(line: str) -> Iterable[str]:
    """A line that is a JSON record holds its traceback as a text; one cut short still has its line ends escaped."""
    if "{" in line[:_LONGEST_LABEL]:
        start = line.index("{")
        strings = _json_strings(line[start:])
        if strings:
            return [line[:start], *(part for string in strings for part in _LINE_END.split(string))]
    if line.count("\\n") > 1:
        return line.replace("\\r", "").replace('\\"', '"').replace("\\'", "'").split("\\n")
    return [line]


def _json_strings(text: str) -> list[str] | None:
    """Every text of a JSON document; None where it is none."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")) or not stripped.endswith(("}", "]")):
        return None
    try:
        document = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict | list):
        return None
    strings: list[str] = []
    left: list[object] = [document]
    while left and len(strings) < _MOST_STRINGS:
        value = left.pop()
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, dict):
            left.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            left.extend(reversed(value))
    return strings


def _plain(line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} {line[-_LONGEST_LINE // 2 :]}"
    line = _CONTROL.sub("", _COLOUR.sub("", line)).rstrip()
    start = 0
    for _ in range(_DEEPEST):
        wrapping = _WRAPPING.match(line, start)
        if wrapping is None or wrapping.end() == start:
            break
        start = wrapping.end()
    return _BOX_END.sub("", line[start:]) if start else line


def line_at(text: str, starts: Sequence[int], position: int) -> int:
    """The line that a position of `text` stands in, from 0; `starts` are where its lines begin."""
    return bisect_right(starts, min(position, len(text))) - 1


def starts_of(lines: Sequence[str]) -> list[int]:
    return list(accumulate((len(line) + 1 for line in lines), initial=0))[:-1]


# -- versions ----------------------------------------------------------------------------------------------------------

_V = r"\d{1,4}\.\d{1,4}(?:\.\d{1,8})?(?:\.?(?:a|b|rc|dev|post)\d{1,8}){0,2}(?:(?:\+|%2B)[A-Za-z0-9.]{1,40})?"
_SEPARATOR = (
    r"(?:\.__version__|[ _-]?(?:version|ver\b\.?|release|nightly))?[`'\"*]{0,3}(?: (?:is at|is|at|was|used))?"
    r"\s{0,3}[:=]{0,2}\s{0,30}[`*('\"v]{0,3}"
)
_NO_MEASURE = r"(?!\s?(?:[mµn]?s|sec\w*|min\w*|h|hours?|[KMGT]i?B|x|%|times)\b)(?!%)"  # torch is 2.6 times faster
_TO = rf"(?:\s(?:to|->|→|and|or|vs\.?)\sv?({_V}))?"  # from torch 2.5.1 to 2.6.0: both are told

# Of each name the surest source first: `collect_env`, then what a package manager prints, then words and paths.
_DRIVER = r"([0-9]{3,4}(?:\.[0-9]{1,3}){0,2})\b"
_VERSIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "torch",
        (
            rf"^\s{{0,9}}PyTorch\s[^\n(]{{1,80}}\(you have ({_V})\)",  # of xFormers, before what it was built for
            rf"^PyTorch version:\s{{0,9}}({_V})",
            rf"(?:^|[\s'\"\]])torch==({_V})|^\[conda\]\s{{1,9}}(?:py)?torch\s{{1,40}}({_V})",
            rf"\btorch-({_V})(?:-cp\d|\.dist-info|-py3|(?=[\s,;)]|$))",
            rf"(?<![\w.-])(?:torch|pytorch){_SEPARATOR}({_V}){_NO_MEASURE}{_TO}",
            rf"\b(?:version|release) ({_V}) of (?:py)?torch\b",
            r"(?<![\w.+-])(?<![a-z][ =:])(?<!==)([1-9]\d{0,2}\.\d{1,3}\.\d{1,3}\+(?:cu\d{2,3}|cpu|rocm[\d.]{1,8}))\b",
        ),
    ),
    (
        "CUDA",
        (
            r"^CUDA used to build PyTorch:\s{0,9}(\d{1,3}\.\d{1,3}|None)",
            r"\bnvidia-cuda-runtime(?:-cu\d\d)?==(\d{1,3}\.\d{1,3}(?:\.\d{1,8})?)",
            rf"(?<![\w.])torch\.version\.cuda{_SEPARATOR}(\d{{1,3}}\.\d{{1,3}})",
            r"(?<![\w.])CUDA(?: version| toolkit| runtime)?\s{0,3}[:=]?\s{0,3}v?(\d{1,3}\.\d{1,3})",
        ),
    ),
    ("ROCm", (r"^ROCM used to build PyTorch:\s{0,9}(\d[\w.-]{0,40})",)),
    ("XPU", (r"^XPU used to build PyTorch:\s{0,9}(\d[\w.-]{0,40})",)),
    (
        "Triton",
        (
            rf"(?:^|[\s'\"\]])(?:pytorch-)?triton==({_V})|^\[conda\]\s{{1,9}}(?:pytorch-)?triton\s{{1,40}}({_V})",
            rf"\btriton-({_V})(?:-cp\d|\.dist-info)",
            rf"(?<![\w.-])(?:pytorch-)?triton{_SEPARATOR}({_V})",
        ),
    ),
    (
        "Python",
        (
            r"^\s{0,9}Python\s[^\n(]{1,80}\(you have (3\.\d{1,2}(?:\.\d{1,2})?)\)",
            r"^Python version:\s{0,9}(3\.\d{1,2}(?:\.\d{1,2})?)",
            r"(?<![\w.])Python(?: version)?\s{0,3}[:=]?\s{0,3}v?(3\.\d{1,2}(?:\.\d{1,2})?)",
            r"[/\\](?:lib64|lib)[/\\]python(3\.\d{1,2})[/\\]",
            r"\bpy(?:thon)?(3\.\d{1,2})\b|-cp(3\d{1,2})-cp3",
        ),
    ),
    (
        "GPU",
        (
            r"^(?:GPU models and configuration: ?)?GPU \d{1,2}: ([^\n(]{1,60})",
            r"^\|[ ]{1,4}\d{1,2}  (\S.{2,40}?)[ ]{1,20}(?:On|Off|N/A|WDDM|TCC|MCDM)[ ]{1,4}\|",  # nvidia-smi
            (
                r"\b(NVIDIA (?:GeForce |Tesla |RTX )?(?-i:[A-Z0-9])[\w-]{1,20}"
                r"(?: (?:\w*\d\w*|Ti|Super|Ada|Blackwell|Generation|Laptop|PCIe|NVL)\b){0,2})"
            ),
        ),
    ),
    ("working Triton", (r"(Cannot find a working triton installation|\bTritonMissing\b)",)),
    ("usable CUDA", (r"^Is CUDA available:\s{0,9}(True)\b",)),
    ("driver", (rf"^Nvidia driver version:\s{{0,9}}{_DRIVER}", rf"\bDriver Version:\s{{0,9}}{_DRIVER}")),
)
_READ = tuple(
    (name, tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns))
    for name, patterns in _VERSIONS
)
_MOST_MENTIONS = 50  # mentions of one version that are looked at
_CERTAIN_CUDA = 2  # the first so many of CUDA's sources tell what torch was built for, the others what is about


def versions_of(pasted: CleanedPaste) -> tuple[VersionMention, ...]:
    """The versions that a paste tells of, of each name from the surest source that has any.

    A name occurs twice where that source contradicts itself.
    """
    text = pasted.text
    mentions = [mention for name, patterns in _READ for mention in _surest(name, patterns, text)]
    return (*mentions, *(VersionMention("platform", name, words) for name, words in platforms_in(text).items()))


def _surest(name: str, patterns: Sequence[re.Pattern[str]], text: str) -> list[VersionMention]:
    for pattern in patterns:
        mentions: dict[str, VersionMention] = {}
        for _, match in zip(range(_MOST_MENTIONS), pattern.finditer(text), strict=False):
            line = line_around(text, match).strip()[:200]
            if name == "CUDA" and "Driver Version" in line:  # nvidia-smi names the newest that the driver knows
                continue
            for value in (_normalize_version(name, group) for group in match.groups() if group):
                mentions.setdefault(value, VersionMention(name, value, line))
        if mentions:  # 2.7.1 says nothing beside 2.7.1+cu126, and 3.11 nothing beside 3.11.9
            return [
                mention
                for value, mention in mentions.items()
                if not any(other.startswith((f"{value}+", f"{value}.")) for other in mentions)
            ]
    return []


def _normalize_version(name: str, value: str) -> str:
    value = value.strip().replace("%2B", "+").replace("%2b", "+").rstrip(".")
    if name == "Python" and "." not in value:  # cp312
        return f"3.{value[1:]}"
    is_short = name == "torch" and value.count(".") == 1 and value.replace(".", "").isdigit()
    return f"{value}.0" if is_short else value  # 2.6 is said of 2.6.0


def stated_by(mentions: Iterable[VersionMention]) -> StatedEnvironment:
    """The versions as an environment that somebody states, so that its build is found by the gate's own rules."""
    every = tuple(mentions)
    names = {"torch": "torch", "Triton": "triton"}
    pins = [PinnedPackage(names[mention.name], mention.value) for mention in every if mention.name in names]
    # The CUDA that torch was built for counts; a toolkit that lies about on the machine decides no build.
    surest = dict(_READ)["CUDA"][:_CERTAIN_CUDA]
    cuda = [
        mention
        for mention in every
        if mention.name == "CUDA" and any(pattern.search(mention.line) for pattern in surest)
    ]
    pins += [PinnedPackage("nvidia-cuda-runtime", mention.value) for mention in cuda if mention.value != "None"]
    others = {mention.name.casefold(): mention.line for mention in every if mention.name in {"ROCm", "XPU"}}
    platforms = {mention.value: mention.line for mention in every if mention.name == "platform"}
    pythons = {".".join(mention.value.split(".")[:2]) for mention in every if mention.name == "Python"}
    gpus = [mention.value for mention in every if mention.name == "GPU"]
    named = [hardware_named(gpu) for gpu in gpus]
    # Where torch found CUDA the driver runs it: a container may bring newer libraries of it (cuda-compat).
    is_usable = any(mention.name == "usable CUDA" for mention in every)
    drivers = {mention.value for mention in every if mention.name == "driver" and not is_usable}
    return StatedEnvironment(
        "paste",
        tuple(pins),
        python=pythons.pop() if len(pythons) == 1 else "",
        driver=drivers.pop() if len(drivers) == 1 else "",
        gpus=tuple(dict.fromkeys(hardware.name for hardware in named if hardware and not hardware.is_any_gpu)),
        platforms=platforms | platform_of_gpus(gpus),
        backends=others or dict(("", mention.line) for mention in cuda if mention.value == "None"),  # noqa: C402
    )


_PIP = re.compile(r"^\[pip3?\]\s{1,9}([A-Za-z0-9][\w.-]{0,80})==([\w.!+-]{0,60})$", re.MULTILINE)
_KNOWN = re.compile(r"torch|(?:pytorch-)?triton|nvidia-.*")


def read_collected(source: Source, python: str) -> StatedEnvironment:
    """Read the output of `collect_env`: it names few packages beside torch, and the GPUs. Raises OtherPython."""
    pasted = read_paste(source.text)
    stated = stated_by(versions_of(pasted))
    pythons_of(f"=={stated.python}.*" if stated.python else "", stated=python, source=source)
    packages = {canonical(name): version for name, version in _PIP.findall(pasted.text)[:MOST_PACKAGES]}
    return replace(
        stated,
        kind="collect_env" if "PyTorch version:" in pasted.text else "nvidia-smi",
        pins=(
            *stated.pins,
            *(PinnedPackage(*package) for package in packages.items() if not _KNOWN.fullmatch(package[0])),
        ),
        python=python or stated.python,
        is_whole=False,
    )
