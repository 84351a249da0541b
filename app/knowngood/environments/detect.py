"""Detection of a file's kind, by its name and then by its content; and the door for all kinds."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from knowngood.domain.builds.build_names import minor_python
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import Message, quoted
from knowngood.environments import conda_list
from knowngood.environments.lockfiles import (
    read_pdm_lock,
    read_pipfile_lock,
    read_poetry_lock,
    read_pylock,
    read_uv_lock,
)
from knowngood.environments.platform_reading import platforms_in
from knowngood.environments.pyproject import PYPROJECT, is_script, read_pyproject, read_script
from knowngood.environments.requirements_txt import (
    is_table,
    read_dockerfile,
    read_package_list,
    read_requirements,
    read_table,
)
from knowngood.environments.resolve import StatedEnvironment
from knowngood.environments.source import Source, Table, canonical, quote, read_source, read_toml

_JSON_LIST = re.compile(r"\s*\[\s*(?:\{|\]|$)")
_TOML = re.compile(r"^[ \t]*(?:\[\[[ \t]*packages?[ \t]*\]\]|lock-version[ \t]*=)", re.MULTILINE)
_PROJECT = re.compile(
    r"^[ \t]*\[{1,2}[ \t]*(?:project|dependency-groups|build-system|tool)[ \t]*(?:\.[^\]\n]*)?\]", re.MULTILINE
)
_YAML = re.compile(r"^dependencies[ \t]*:", re.MULTILINE)
_COLLECTED = re.compile(
    r"^[> \t]*(?:PyTorch version:|Collecting environment information|[|] NVIDIA-SMI \d)", re.MULTILINE
)
_PROMPT = re.compile(
    r"^(?:\([^()\n]{0,60}\)[ \t]*)?[^\s=]{0,80}[ \t]?[$%>\u276f][ \t]*"
    r"(?:uv|pip3?|python3?|conda|mamba|micromamba)[ \t].*$",
    re.MULTILINE,
)
_WITH_GROUPS = (PYPROJECT, "uv.lock", "poetry.lock", "pixi.toml", "pixi.lock")
_EXPLICIT = re.compile(r"^@EXPLICIT[ \t]*$", re.MULTILINE)
_REFUSED = {
    "pipfile": Message("file_wishes", wanted="Pipfile.lock"),
    "setup.py": Message("file_wishes", wanted="pip freeze"),
    "setup.cfg": Message("file_wishes", wanted="pip freeze"),
    "conda-lock.yml": Message("file_conda_lock"),
}


def read_environment(name: str, content: bytes, *, python: str = "", groups: Sequence[str] = ()) -> StatedEnvironment:
    """Read what somebody says is installed. `name` is the file's (may be empty: then the content decides). `groups` are
    the extras and groups that are installed, for files that have some; none named, or `all`, are all of them.

    `python` is the Python that the caller states (`3.12`); markers are read for it, else for those that the file
    allows, and what they leave open is kept. Raises OtherPython where the file is for other ones than `python`, and
    BadEnvironment, of which that is one; nothing else, whatever `content` holds.
    """
    named = () if "all" in groups else tuple(map(canonical, groups))
    source = replace(read_source(name, content), groups=named)
    if not name:
        source = replace(source, text=_PROMPT.sub("", source.text))
    try:
        stated = minor_python(python)
    except BadRequest as error:
        raise source.wrong(0, quoted(str(error))) from None
    try:
        environment = _read(source, stated)
    except RecursionError:
        raise source.wrong(0, Message("file_deep")) from None
    if groups and environment.kind not in _WITH_GROUPS:
        raise source.wrong(0, Message("file_groupless", name=environment.kind, names=_WITH_GROUPS))
    if environment.unread and not any(pin.version for pin in environment.all_of("torch")):
        file, line = next(iter(environment.unread.items()))
        raise source.wrong(line, Message("file_includes", name=quote(file)))
    is_of_several = environment.kind == "pixi.lock"  # the text has the wheels of all its environments
    platforms = {} if is_of_several else platforms_in(source.text)
    return replace(environment, platforms={**platforms, **environment.platforms})


def _read(source: Source, python: str) -> StatedEnvironment:
    if problem := _REFUSED.get(source.name.lower()):
        raise source.wrong(0, problem)
    for is_so, read in _READERS:
        if is_so(source):
            return read(source, python)
    is_pinned = _PINNED.search(source.text)  # requirements.lock of Rye and of pip-compile
    if source.name.lower().endswith(".toml" if is_pinned else (".toml", ".lock")):
        raise source.wrong(0, Message("file_no_lock"))
    return read_requirements(source, python)


def _read_lock(source: Source, python: str) -> StatedEnvironment:
    """Read a lock in TOML, by its name, or where it has another one by what it holds."""
    data, base = read_toml(source), source.name.lower() if _is_lock(source) else ""
    if base.startswith("pylock") or "lock-version" in data.values:
        return read_pylock(source, data, python)
    if base == "poetry.lock" or (not base and _has_in_metadata(data, "lock-version")):
        return read_poetry_lock(source, data, python)
    if base == "pdm.lock" or (not base and _has_in_metadata(data, "lock_version")):
        return read_pdm_lock(source, data, python)
    return read_uv_lock(source, data, python)


# Imported for its files alone: YAML takes 20 ms, and most questions bring none.


def _read_yml(source: Source, python: str) -> StatedEnvironment:
    from knowngood.environments.conda_env_yaml import read_environment_yml

    return read_environment_yml(source, python)


def _read_collected(source: Source, python: str) -> StatedEnvironment:
    from knowngood.environments.log_cleaning import read_collected

    return read_collected(source, python)


def _has_in_metadata(data: Table, key: str) -> bool:
    metadata = data.values.get("metadata")
    return isinstance(metadata, dict) and key in metadata


_BUILT = re.compile(r"^[ \t]*(?:FROM|RUN)[ \t]\S", re.MULTILINE)
_PIXI = re.compile(r"^\[(?:feature\.[\w-]{1,80}\.)?(?:pypi-)?dependencies\]", re.MULTILINE)
_PINNED = re.compile(r"^[A-Za-z0-9][\w.-]{0,80}(?:\[[\w,. -]{0,80}\])?==\d", re.MULTILINE)
_PIXI_LOCK = re.compile(r"^environments:[ \t]*\n", re.MULTILINE)


def _is_called(pattern: str, source: Source) -> bool:
    return re.fullmatch(pattern, source.name.lower()) is not None


_is_lock = partial(_is_called, r"(?:uv|poetry|pdm)\.lock|pylock(?:\.[^.]+)?\.toml")


def _is_pixi(source: Source) -> bool:
    return _is_called(r"pixi\.toml", source) or (not _is_called(r".*\.py", source) and bool(_PIXI.search(source.text)))


def _is_project(source: Source) -> bool:
    """By its name, or a table of a project, and none of a lock; scripts hold theirs in comments."""
    holds_project = _PROJECT.search(source.text) and not (_TOML.search(source.text) or is_script(source))
    return source.name.lower() == PYPROJECT or (not _is_called(r".*\.(?:lock|json)", source) and bool(holds_project))


# In this order, by name and then by content: a list of conda's may hold what looks like another format further down.
_READERS: tuple[tuple[Callable[[Source], object], Callable[[Source, str], StatedEnvironment]], ...] = (
    (partial(_is_called, r"(?:docker|container)file(?:\..*)?|.*\.dockerfile"), read_dockerfile),
    (partial(_is_called, r"pixi\.lock"), conda_list.read_pixi_lock),
    (_is_pixi, conda_list.read_pixi),
    (partial(_is_called, r".*\.ya?ml"), _read_yml),
    (partial(_is_called, r"pipfile\.lock"), read_pipfile_lock),
    (_is_lock, _read_lock),
    (_is_project, read_pyproject),
    (partial(_is_called, r".*\.py"), read_script),
    (is_script, read_script),
    (lambda source: _BUILT.search(source.text), read_dockerfile),
    (lambda source: _PIXI_LOCK.search(source.text), conda_list.read_pixi_lock),
    (lambda source: source.text.lstrip().startswith("{"), read_pipfile_lock),
    (lambda source: _EXPLICIT.search(source.text), conda_list.read_explicit),
    (lambda source: _TOML.search(source.text), _read_lock),
    (
        lambda source: _JSON_LIST.match(source.text) or source.name.lower().endswith(".json"),
        read_package_list,
    ),
    (lambda source: _YAML.search(source.text), _read_yml),
    (lambda source: conda_list.is_export(source.text), conda_list.read_export),
    (lambda source: conda_list.PRINTED.search(source.text), conda_list.read_printed),
    (is_table, read_table),
    (lambda source: _COLLECTED.search(source.text), _read_collected),
)
