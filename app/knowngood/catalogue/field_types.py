"""The kinds of values the catalogue's files hold: each with its check, its words of refusal and its JSON Schema."""

import math
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from keyword import iskeyword
from typing import Annotated, Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from knowngood.domain.issue import OPERATOR_PROBE, PROBES

SUMMARY_CHARACTERS = 80
TITLE_CHARACTERS = 120
RELEASE_FORM = r"^\d+\.\d+$"

_OPERATOR_FORM = r"^operator:[A-Za-z_]\w*::[A-Za-z_]\w*$"
_PIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*==[^=*\s,;]+$")
_INT_END = 1 << 63
_SIGNALS = frozenset(name for name in signal.Signals.__members__ if not name.startswith("SIGRT"))


@dataclass(frozen=True)
class _Check:
    """A test that a text must pass, the sentence (with the text for `{}`) that refuses it, and what its schema says."""

    accepts: Callable[[str], object]
    refusal: str
    schema: JsonSchemaValue = field(default_factory=dict, hash=False)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **self.schema}

    def _check(self, text: str) -> str:
        if not self.accepts(text):
            raise ValueError(self.refusal.format(text))
        return text


def _form(pattern: str, wanted: str) -> _Check:
    return _Check(re.compile(pattern).fullmatch, f'"{{}}" is not {wanted}', {"pattern": pattern})


def _one_line(text: str) -> str:
    if not text.strip() or "\n" in text:
        raise ValueError("must be one line of text")
    if len(text) > TITLE_CHARACTERS:
        raise ValueError(f"has {len(text)} characters; {TITLE_CHARACTERS} are shown")
    return text


def _check_summary(text: str) -> str:
    length = len(text.strip())
    if length < SUMMARY_CHARACTERS:
        raise ValueError(
            f"has {length} characters; say in {SUMMARY_CHARACTERS} or more what goes wrong, where and for whom"
        )
    return text


def _is_https(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme == "https" and "." in (parts.hostname or "") and not re.search(r"\s", text)


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f'"{text}" is no version specifier; write for example ">=2.6,<2.8"') from None
    return text


def _requirement(text: str) -> str:
    """A name with an optional specifier. A pin is compared with what was imported, so it is one whole version."""
    filled = text.replace("{torch}", "2.0.0")
    try:
        requirement = Requirement(filled)
    except InvalidRequirement:
        raise ValueError(f'"{text}" is no requirement; write for example "einops==0.8.0"') from None
    if requirement.extras or requirement.marker or requirement.url:
        raise ValueError(f'"{text}" has extras, a marker or an address; write a name and a version alone')
    if "==" in filled and not _PIN.match(filled):
        raise ValueError(f'"{text}" pins no single version; write NAME==VERSION without spaces')
    return text


def _version(text: str) -> str:
    try:
        version = Version(text)
    except InvalidVersion:
        raise ValueError(f'"{text}" is no PEP 440 version') from None
    if str(version) != text or version.local:
        raise ValueError(f'"{text}" must be written "{version.public}"; a local part such as cu124 goes to "local"')
    return text


def _probe(text: str) -> str:
    if text in PROBES or re.fullmatch(_OPERATOR_FORM, text):
        return text
    near = get_close_matches(text, PROBES, 1)
    hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(PROBES)}, {OPERATOR_PROBE}NAMESPACE::NAME"
    raise ValueError(f'"{text}" is no probe; {hint}')


def _fits_json(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or (isinstance(value, int) and -_INT_END <= value < _INT_END)


def _params(params: dict[str, Any]) -> dict[str, Any]:
    for name, value in params.items():
        if not name.isidentifier() or iskeyword(name):
            raise ValueError(f'"{name}" cannot be the name of a keyword argument')
        if not _fits_json(value):
            raise ValueError(f'"{name}" must be a text, a boolean or a number of at most 64 bits')
    return params


Line = Annotated[
    str, AfterValidator(_one_line), Field(json_schema_extra={"minLength": 1, "maxLength": TITLE_CHARACTERS})
]
Text = Annotated[str, _Check(str.strip, "must not be empty", {"minLength": 1})]
Summary = Annotated[str, AfterValidator(_check_summary), Field(json_schema_extra={"minLength": SUMMARY_CHARACTERS})]
Body = Annotated[
    str,
    _Check(lambda text: "`" in text, "shows no snippet; put what a user pastes between ``` lines", {"pattern": "`"}),
]
Url = Annotated[str, _Check(_is_https, '"{}" is no https address', {"format": "uri", "pattern": "^https://"})]
Specifier = Annotated[str, AfterValidator(_specifier)]
RequirementText = Annotated[str, AfterValidator(_requirement)]
VersionText = Annotated[str, AfterValidator(_version)]
SignalName = Annotated[
    str,
    _Check(
        _SIGNALS.__contains__,
        '"{}" is no signal; write for example "SIGABRT" or "SIGSEGV"',
        {"pattern": "^SIG[A-Z0-9]+$"},
    ),
]
Probe = Annotated[
    str,
    AfterValidator(_probe),
    WithJsonSchema({"anyOf": [{"enum": list(PROBES)}, {"type": "string", "pattern": _OPERATOR_FORM}]}),
]
Params = Annotated[
    dict[str, Any],
    AfterValidator(_params),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
Name = Annotated[str, _form(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "a name of letters, digits, dots, dashes, underscores")]
PackageName = Annotated[
    str,
    _form(r"^([a-z0-9]+(-[a-z0-9]+)*)?$", "a package's canonical name (PEP 503: small letters, digits, single dashes)"),
]
FrameName = Annotated[
    str,
    _form(r"^[A-Za-z_<][A-Za-z0-9_<>.]*$", 'the name of a function, a kernel or a class, such as "Model.forward"'),
]
FunctionName = Annotated[str, _form(r"^[a-z][a-z0-9_]*$", "the name of a function (lower case, digits, underscores)")]
VectorIsa = Annotated[str, _form(r"^(avx2|avx512)$", 'a vector ISA, "avx2" or "avx512"')]
Capability = Annotated[str, _form(r"^\d{1,2}\.\d$", 'a compute capability such as "7.0"')]
PythonVersion = Annotated[str, _form(r"^3\.\d{1,2}$", 'a version of Python such as "3.11"')]
GitRevision = Annotated[str, _form(r"^[0-9a-f]{40}$", "a git revision of 40 hexadecimal digits")]
CudaVersion = Annotated[str, _form(r"^\d{1,2}\.\d{1,2}$", 'a version of CUDA such as "12.4"')]
LocalVersion = Annotated[str, _form(r"^([a-z0-9]+(\.[a-z0-9]+)*)?$", 'a local version such as "cu124"')]
