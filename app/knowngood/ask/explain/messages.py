"""What messages of an installation mean: a wheel without code for a GPU, a package built for another torch.

No row of the catalogue: nothing of it is run here. Each is a claim of its sources (`repros/messages.toml`), and shown as
one.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from packaging.version import InvalidVersion, Version

from knowngood.ask.explain.answer import Meaning, Strength
from knowngood.ask.signature_search import SearchBudget
from knowngood.catalogue_digest import SHIPPED
from knowngood.environments.log_cleaning import VersionMention
from knowngood.serialization.by_type import read_value

_LONGEST_SHOWN = 400


@dataclass(frozen=True)
class KnownMessage:
    """`patterns` are looked for in a text. `commands` are what to run instead of the meaning's command where the text
    states torch, by its release or minor release: `{torch}` stands for the release, `{patch}` for its last part,
    `{index}` for the option that names the index of its CUDA. `better` are issues and messages that say it better: this
    one is not told beside them.
    """

    meaning: Meaning
    patterns: tuple[str, ...]
    commands: Mapping[str, str] = field(default_factory=dict)
    better: tuple[str, ...] = ()


@cache
def shipped_messages() -> tuple[KnownMessage, ...]:
    """All that come with this release, in the order of their file."""
    tables = tomllib.loads((SHIPPED / "messages.toml").read_text(encoding="utf-8"))["message"]
    return tuple(read_value(KnownMessage, {**table, "meaning": table}) for table in tables)


def meanings_of(
    text: str,
    messages: Sequence[KnownMessage],
    versions: Sequence[VersionMention],
    matched: Iterable[str],
    budget: SearchBudget,
) -> list[Meaning]:
    """The meanings of what a text says, sure ones first. `matched` are the issues that it matches. Raises
    TimeoutError.
    """
    hits = {
        message.meaning.id: (message, hit)
        for message in messages
        if (hit := budget.search("|".join(message.patterns), text))
    }
    told, found = {*matched, *hits}, []
    torch = next((version.value for version in versions if version.name == "torch"), "")
    for message, hit in hits.values():
        if told.isdisjoint(message.better):
            line = text[text.rfind("\n", 0, hit.end() - 1) + 1 :].partition("\n")[0].strip()[:_LONGEST_SHOWN]
            command = _command_for(torch, message.commands) or message.meaning.command
            found.append(replace(message.meaning, line=line, command=command))
    return sorted(found, key=lambda meaning: meaning.strength is not Strength.SURE)


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
