"""The messages of an installation and their meaning: a wheel without code for a GPU, a package for another torch.

None is a row of the catalogue: nothing of it is run here. Each is a claim of its sources (`repros/messages.toml`), and
shown as one.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from packaging.version import InvalidVersion, Version

from knowngood.ask.explain.answer import LONGEST_SHOWN, Meaning, Strength
from knowngood.ask.explain.exports import exports_of, is_torchs, nearest_release, tell_exports
from knowngood.ask.text_index import SearchBudget
from knowngood.catalogue_digest import SHIPPED
from knowngood.environments.log_cleaning import VersionMention
from knowngood.serialization.by_type import read_value


@dataclass(frozen=True)
class KnownMessage:
    """`patterns` are looked for in a text. `commands` are what to run instead of the meaning's command where the text
    states torch, by its release or minor release: `{torch}` stands for the release, `{patch}` for its last part,
    `{index}` for the option that names the index of its CUDA. `fitting` is the one where that torch lacks the symbol:
    `{fit}` is the nearest release that exports it. `better` are issues and messages that say it better: this one is not
    told beside them.
    """

    meaning: Meaning
    patterns: tuple[str, ...]
    commands: Mapping[str, str] = field(default_factory=dict)
    fitting: str = ""
    better: tuple[str, ...] = ()


@cache
def shipped_messages() -> tuple[KnownMessage, ...]:
    """All that come with this release, in the order of their file."""
    tables = tomllib.loads((SHIPPED / "messages.toml").read_text(encoding="utf-8"))["message"]
    return tuple(read_value(KnownMessage, {**table, "meaning": table}) for table in tables)


Found = Mapping[str, tuple[KnownMessage, str]]
"""By id, the messages that a text holds, each with the line that says it, at its whole length."""


def find_messages(text: str, messages: Iterable[KnownMessage], budget: SearchBudget) -> tuple[Found, list[str]]:
    """Find the messages of a text. Also tells those (ids) that took too long to look for."""
    found, untried = {}, []
    for message in messages:
        try:
            hit = budget.search("|".join(message.patterns), text)
        except TimeoutError:
            untried.append(message.meaning.id)
            continue
        if hit:
            found[message.meaning.id] = (message, _line(text, hit.end()))
    return found, untried


def _line(text: str, end: int) -> str:
    return text[text.rfind("\n", 0, end - 1) + 1 :].partition("\n")[0].strip()


def meanings_of(found: Found, versions: Iterable[VersionMention], matched: Iterable[str]) -> tuple[Meaning, ...]:
    """The meanings of the messages that were found, sure ones first. `matched` are the issues that the text matches."""
    told = {*matched, *found}
    torch = next((version.value for version in versions if version.name == "torch"), "")
    meanings = [
        _meaning(message, line, torch, _symbol_in([line, *_worse(message.meaning.id, found)]))
        for message, line in found.values()
        if told.isdisjoint(message.better)
    ]
    return tuple(sorted(meanings, key=lambda meaning: meaning.strength is not Strength.SURE))


def _worse(id_: str, found: Found) -> Iterable[str]:
    """The lines of the messages that this one says better."""
    return (line for message, line in found.values() if id_ in message.better)


_SYMBOL = re.compile(r"undefined symbol:? (\w+)", re.ASCII)


def _symbol_in(lines: Iterable[str]) -> str:
    """The symbol of torch that a line names; empty where there is none."""
    symbols = (match[1] for match in map(_SYMBOL.search, lines) if match)
    return next(filter(is_torchs, symbols), "")


def _meaning(message: KnownMessage, line: str, torch: str, symbol: str) -> Meaning:
    """Where the stated torch exports the symbol, the torch that was loaded is another, and the cause not sure."""
    meaning = replace(message.meaning, line=line[:LONGEST_SHOWN])
    command = _command_for(torch, message.commands) or meaning.command
    if not symbol:
        return replace(meaning, command=command)
    exports = exports_of(symbol, torch)
    fit = nearest_release(exports)
    return replace(
        meaning,
        command=message.fitting.format(fit=fit, torch=torch) if fit and message.fitting else command,
        strength=Strength.POSSIBLE if exports.here in (exports.releases or ()) else meaning.strength,
        symbol=exports.declaration[:LONGEST_SHOWN],
        exports=tell_exports(exports),
    )


def _command_for(torch: str, commands: Mapping[str, str]) -> str:
    """The command for a release as it was stated; empty where there is none for it."""
    try:
        version = Version(torch)
    except InvalidVersion:
        return ""
    minor, tag = f"{version.major}.{version.minor}", version.local or ""
    command = commands.get(version.base_version) or commands.get(minor, "")
    index = f" --index-url https://download.pytorch.org/whl/{tag}" if tag.startswith(("cu", "cpu", "rocm")) else ""
    return command.format(torch=version.base_version, patch=version.micro, index=index)
