"""The reading of a text, whichever door it comes to: a question, an error or an environment; and the names in a
question: a thread, builds, hardware, components, packages, conditions, and the words that are left. Pure.

Names are looked for from the left, the longest first, so that `RTX 4090` is no issue 4090 and `torch 2.7.1 cuda 11.8`
is one build.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum

from packaging.utils import canonicalize_name

from knowngood.domain.hardware_names import NamedHardware, hardware_meant, hardware_named
from knowngood.domain.threads import Projects, Thread, thread_named


class HitKind(StrEnum):
    """`thread` is an issue upstream that the catalogue has not; `error` and `environment` are what was pasted."""

    ISSUE = "issue"
    THREAD = "thread"
    BUILD = "build"
    HARDWARE = "hardware"
    QUERY = "query"
    COMPARE = "compare"
    UPGRADE = "upgrade"
    WHEELS = "wheels"
    ERROR = "error"
    ENVIRONMENT = "environment"


CONDITIONS: Mapping[str, str] = {
    "silent": "silent:yes",
    "silently": "silent:yes",
    "wrong numbers": "silent:yes",
    "wrong results": "silent:yes",
    "wrong result": "silent:yes",
    "静默": "silent:yes",
    "crash": "signature:signal",
    "crashes": "signature:signal",
    "segfault": "signature:signal",
    "segmentation fault": "signature:signal",
    "hang": "signature:hang",
    "hangs": "signature:hang",
    "deadlock": "signature:hang",
    "fail": "status:affected",
    "fails": "status:affected",
    "failing": "status:affected",
    "broken": "status:affected",
    "breaks": "status:affected",
    "broke": "status:affected",
    "affected": "status:affected",
    "pass": "status:not_affected",
    "passes": "status:not_affected",
    "works": "status:not_affected",
    "flaky": "status:flaky",
    "no workaround": "workaround:none",
    "without workaround": "workaround:none",
    "without a workaround": "workaround:none",
    "with a workaround": "workaround:effective",
    "has a workaround": "workaround:effective",
    "severe": "severity:>=high",
    "high severity": "severity:>=high",
}
"""Conditions of the query language, by the words that mean them."""

PURPOSES: Mapping[str, HitKind] = {
    "vs": HitKind.COMPARE,
    "versus": HitKind.COMPARE,
    "compare": HitKind.COMPARE,
    "compared": HitKind.COMPARE,
    "->": HitKind.COMPARE,
    "→": HitKind.COMPARE,
    "diff": HitKind.COMPARE,
    "changed": HitKind.COMPARE,
    "upgrade": HitKind.UPGRADE,
    "upgrading": HitKind.UPGRADE,
    "update": HitKind.UPGRADE,
    "best": HitKind.UPGRADE,
    "升级": HitKind.UPGRADE,
}
"""The interest that somebody has in the builds they name."""

SAID_OTHERWISE: Mapping[str, str] = {
    "oom": "memory",
    "recompile": "anew",
    "recompiles": "anew",
    "recompilation": "anew",
    "cudagraph": "graphs",
    "cudagraphs": "graphs",
    "aotinductor": "aoti",
    "attention": "sdpa",
    "gradient": "grad",
    "segfault": "dies",
    "crash": "dies",
    "wrong": "silent",
}
"""Words of the index, by other words for them."""

_SAID_BESIDE = """
a about an and any are at be bug bugs but can do does for from had has have i if in install installed is issue issues
it its me my of on or our pip please problem problems should show team than that the their there these they this those
to torch pytorch use using version was we were what when where which why will with would you your
"""
SAID_BESIDE = frozenset(_SAID_BESIDE.split())
"""Words of a question that name nothing."""

_SAID_EVERYWHERE = """
the and for with from that this was were are not but have has had you your can could would should what when where
which there here they them then than its into out our all any one two get got use used using also only just does did
how why will been because about after before some more most other such very like same each please thanks help hello
file line most recent call last traceback self args kwargs return none true false def class import lib site packages
python python3 conda miniconda3 train main script usr home root opt env venv conda user raise error exception torch
module
"""
SAID_EVERYWHERE = frozenset(_SAID_EVERYWHERE.split())
"""Words of the language itself, and of every traceback: they tell no two failures apart."""

ELSEWHERE = frozenset({"windows", "macos"})
"""Platforms on which nothing is measured: no issue is found by them."""

_PACKAGES = """
accelerate apex bitsandbytes causal-conv1d cupy datasets deepspeed diffusers einops exllamav2 fairscale fastai
flash-attn flash-attention flash-linear-attention flashinfer gsplat jax keras liger-kernel lightning mamba-ssm
megatron-core mmcv monai numba numpy nunchaku onnx onnxruntime opencv-python optimum pandas peft pillow
pytorch-lightning pytorch3d ray sageattention scikit-learn scipy sentence-transformers sglang spacy tensorflow
tensorrt timm tokenizers torch-geometric torch-scatter torch-sparse torch-tensorrt torch-xla torchao torchaudio
torchcodec torchdata torchmetrics torchrec torchtext torchtitan torchtune torchvision transformer-engine
transformers triton-windows trl ultralytics unsloth vllm xformers
"""
PACKAGES = frozenset(_PACKAGES.split())
"""Packages that people have next to torch, by canonical name: each is itself, and no misspelling of another word."""


LONGEST = 2000  # characters that are read as one line


# -- a question, or what was pasted ------------------------------------------------------------------------------------

_FAILED = re.compile(
    r"Traceback \(most recent call last\)|^\W{0,40}[\w.]{0,80}(?:Error|Exception|Unsupported|Interrupt)\b|"
    r"\berror:|\bSegmentation fault\b|\bcore dumped\b|\bFatal Python error\b|\bterminate called\b",
    re.MULTILINE,
)
_COLLECTED = re.compile(r"^PyTorch version:|^Collecting environment information|^[| ]*NVIDIA-SMI \d", re.MULTILINE)
_LISTED = re.compile(
    r"^\[\[packages?\]\]|^[ \t]*Package[ \t]+Version\b|^[# \t]*Name[ \t]+Version[ \t]+Build\b|"
    r"^dependencies:|^[ \t]*\"_meta\":|^\[(?:pypi-)?dependencies\]|"
    r"^[ \t]*-[ \t](?:conda|pypi): |^(?:FROM|RUN)[ \t]\S",
    re.MULTILINE,
)
_PIN = re.compile(
    r"[A-Za-z0-9][\w.-]{0,80}(?:\[[\w, -]{0,80}\])?\s*(?:[=~<>!]=?=?\s*[\dv]|@\s*\S)|#|--?\w|"
    r"[A-Za-z0-9][\w.-]{0,80}\s{1,60}v?\d+\.[\w.+!-]{1,60}(?:\s{1,40}\S{1,60}){0,3}$"
)
_TORCH = re.compile(r"(?<![\w-])(?:py)?torch(?![\w-])", re.IGNORECASE)
_MOST_PINS = 0.6
_SHORT_LINES, _SHORT = 3, 60
_LOOKED_AT = 200_000  # characters: what a text is shows early


def pasted(text: str) -> HitKind | None:
    """ERROR, ENVIRONMENT, or None for a question: a line, or a few short ones."""
    shown = text[:_LOOKED_AT]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    if len(lines) <= 1 and len(text) <= LONGEST:
        return None
    if _FAILED.search(shown):
        return HitKind.ERROR
    if _COLLECTED.search(shown) or (_LISTED.search(shown) and _TORCH.search(shown)):
        return HitKind.ENVIRONMENT
    pins = sum(1 for line in lines if _PIN.match(line))
    if _TORCH.search(shown) and pins >= _MOST_PINS * len(lines):
        return HitKind.ENVIRONMENT
    is_question = len(lines) <= _SHORT_LINES and all(len(line) <= _SHORT for line in lines)
    return None if is_question else HitKind.ERROR


# -- a question --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """The names of a catalogue: `projects` as `threads` has them, `components` by their keys (`component_key`), and
    the canonical names of the `packages` that its issues concern.
    """

    projects: Projects = field(default_factory=dict)
    components: Mapping[str, str] = field(default_factory=dict)
    packages: Collection[str] = ()


@dataclass(frozen=True)
class Reading:
    """`builds` as `build_names` reads them; `triton`, `python` and `cuda` are versions that stand beside no torch.
    `conditions` are of the query language. `purpose` is the interest that somebody has in the builds they name: to
    compare them, or to upgrade (None: none is told). `driver` is NVIDIA's, which says what runs and nothing of issues.
    `components` and `packages` are among the `words` too.
    """

    text: str
    thread: Thread | None = None
    builds: tuple[str, ...] = ()
    hardware: NamedHardware | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    conditions: tuple[str, ...] = ()
    purpose: HitKind | None = None
    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


_BARE = re.compile(r"\d{4,9}")
_VERSION = r"\d{1,3}\.\d{1,4}(?:\.\d{1,6})?(?:(?:a|b|rc|\.?dev|\.?post)\d{1,10})?(?:\+[a-z0-9.]{1,40})?"
_BUILD = re.compile(
    rf"(?:(?P<torch>[a-z]{{4,8}}) ?(?:(?:version|release) ?)?[=-]{{0,3}} ?)?v?(?P<version>{_VERSION})"
    r"(?P<parts>(?:~[\w.+-]{1,40})*)",
    re.IGNORECASE,
)
_COMMAS = re.compile(r"(\d{1,2}),(\d{1,2})(?:,(\d{1,2}))?")
_LOCAL = re.compile(r"\+?(cu\d{2,3}|rocm\d(?:\.\d)*)", re.IGNORECASE)
_PART = re.compile(r"py(?:thon)?[ -]?(\d)\.?(\d{1,2})(?:\.\d{1,2})?", re.IGNORECASE)
_BESIDE = re.compile(rf"(cuda|triton)(?: ?(?:version|toolkit) ?)? ?[=-]{{0,2}} ?v?({_VERSION})", re.IGNORECASE)
_DRIVER = re.compile(
    r"(?:nvidia )?(?:driver|驱动) ?(?:version)? ?[=:]{0,2} ?v?(\d{3}(?:\.\d{1,4}){0,2})", re.IGNORECASE
)
_CHINESE_AROUND = "\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u201c\u201d\u2018\u2019\u300c\u300d"
_AROUND = "\"'`<>()[]{}.,;:!?" + _CHINESE_AROUND
_MOST_TOKENS = 5
_ALIKE = 0.8
_PACKAGE = re.compile(r"([A-Za-z][\w.-]{0,80}?)(?:\[[\w, -]{0,80}\])?(?: ?[=~<>!]{1,3} ?\S*)?")


def plain(text: str) -> str:
    """One line as it is read: full-width characters narrow, blanks single, quotes around it gone."""
    return one_line(unicodedata.normalize("NFKC", text)).strip(_AROUND).strip()


def one_line(text: str) -> str:
    """Blanks single, and without what cannot be printed."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text[: 2 * LONGEST])
    return " ".join(shown.split())[:LONGEST]


def component_key(text: str) -> str:
    """`flex_attention` is FlexAttention."""
    return re.sub(r"[\s_-]+", "", text).casefold()


def read(text: str, names: Names) -> Reading:
    """Read the names in a line."""
    tokens = _COMMAS_APART.sub(" ", plain(text)).split()
    if len(tokens) == 1 and (version := _COMMAS.fullmatch(tokens[0])):
        tokens = [".".join(part for part in version.groups() if part)]
    reading = Reading(plain(text))
    at = 0
    while at < len(tokens):
        for length in range(min(_MOST_TOKENS, len(tokens) - at), 0, -1):
            piece = " ".join(tokens[at : at + length])
            extended = next((extended for take in _TAKERS if (extended := take(reading, piece, names))), None)
            if extended is not None:
                reading, at = extended, at + length
                break
        else:
            reading, at = _with_word(reading, tokens[at]), at + 1
    return _settled(reading)


_COMMAS_APART = re.compile(r",(?=\s)|(?<=[^\d\s]),|,(?=\D)|;")


def _with_word(reading: Reading, token: str) -> Reading:
    word = token.strip(_AROUND)
    if word.casefold() in PURPOSES:
        return replace(reading, purpose=reading.purpose or PURPOSES[word.casefold()])
    return replace(reading, words=(*reading.words, word)) if word else reading


def _settled(reading: Reading) -> Reading:
    """Settle what only the whole text shows: a number that stands alone is a thread, a misspelt name is hardware, and
    words that say nothing are left out.
    """
    words = tuple(word for word in reading.words if word.casefold() not in SAID_BESIDE)
    reading = replace(reading, words=words)
    numbers = [word for word in words if _BARE.fullmatch(word)]
    if reading.thread is None and len(words) == len(numbers) == 1:
        return replace(reading, thread=Thread("", numbers[0]), words=())
    if reading.hardware is None and len(words) == 1 and (near := hardware_meant(words[0])):
        return replace(reading, hardware=near, words=())
    return _completed(reading) if reading.builds else reading


def _completed(reading: Reading) -> Reading:
    """Select among the builds of a torch by the versions written next to it."""
    versions = dict(reading.versions)
    cuda, python, local = versions.pop("cuda", ""), versions.pop("python", ""), versions.pop("local", "")
    local = local or (f"cu{''.join(cuda.split('.')[:2])}" if cuda else "")
    ends = (f"+{local}" if local else ""), (f"~py{python.replace('.', '')}" if python else "")
    builds = tuple(
        f"{text}{ends[0] if '+' not in text else ''}{ends[1] if '~py' not in text else ''}" for text in reading.builds
    )
    return replace(reading, builds=builds, versions=versions)


# -- what a piece of text may be ---------------------------------------------------------------------------------------


def _phrase(reading: Reading, piece: str, _: Names) -> Reading | None:
    condition = CONDITIONS.get(piece.casefold().strip(_AROUND))
    return replace(reading, conditions=(*reading.conditions, condition)) if condition else None


def _hardware(reading: Reading, piece: str, _: Names) -> Reading | None:
    """Take the first hardware that is named; another name of the same class adds nothing."""
    hardware = hardware_named(piece.strip(_AROUND))
    if hardware is None or (reading.hardware and reading.hardware.hardware != hardware.hardware):
        return None
    return replace(reading, hardware=reading.hardware or hardware)


def _thread(reading: Reading, piece: str, names: Names) -> Reading | None:
    thread = thread_named(piece, names.projects) if reading.thread is None else None
    return replace(reading, thread=thread) if thread else None


def _build(reading: Reading, piece: str, names: Names) -> Reading | None:
    match = _BUILD.fullmatch(piece.strip("\"'`<>()[]{},;:!?"))
    if match is None:
        return None
    name = (match["torch"] or "").casefold()
    if name and (_is_package(name, names) or not get_close_matches(name, ("torch", "pytorch"), 1, _ALIKE)):
        return None
    return replace(reading, builds=(*reading.builds, f"{match['version']}{match['parts']}".casefold()))


def _beside(reading: Reading, piece: str, _: Names) -> Reading | None:
    piece = piece.strip(_AROUND)
    if match := _PART.fullmatch(piece):
        versions = {"python": f"{match[1]}.{match[2]}"}
    elif match := _LOCAL.fullmatch(piece):
        versions = {"local": match[1].casefold()}
    elif match := _BESIDE.fullmatch(piece):
        versions = {match[1].casefold(): match[2]}
    elif match := _DRIVER.fullmatch(piece):
        return replace(reading, driver=match[1])
    else:
        return None
    return replace(reading, versions={**reading.versions, **versions})


def _name(reading: Reading, piece: str, names: Names) -> Reading | None:
    """A component, or a package with a version of it or without. Both are words too: issues are found by these."""
    text = piece.strip(_AROUND)
    named = _PACKAGE.fullmatch(text)
    package = canonicalize_name(named[1]) if named and _is_package(named[1], names) else ""
    words = named[1] if named and package else text
    component = names.components.get(component_key(words), "")
    if not package and not component:
        return None
    return replace(
        reading,
        words=(*reading.words, *words.split()),
        components=(*reading.components, component) if component else reading.components,
        packages=(*reading.packages, package) if package else reading.packages,
    )


def _is_package(text: str, names: Names) -> bool:
    name = canonicalize_name(text)
    return name in PACKAGES or name in names.packages


_TAKERS: tuple[Callable[[Reading, str, Names], Reading | None], ...] = (
    _phrase,
    _hardware,
    _beside,
    _thread,
    _build,
    _name,
)
