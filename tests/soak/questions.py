"""Questions by chance about the stores of tests/random_stores.py, each with what it means.

An environment is made from its meaning: a wheel, the Pythons it may have, the packages beside it; and then written down
as one of the files that people have. What is meant is known before a line of it is read.
"""

import json
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Severity
from knowngood.gate.policy import Accept, Effect, Ignore, Policy, RemedyFilter, Variants
from tests.oracle import Environment, Store
from tests.random_stores import CPU, GPU, ISSUES, OLD_GPU, PYTHONS

# What a file says of its Python, as PEP 440 has it, and the Pythons that are left.
PYTHON_WORDS = {
    "": ("3.10", "3.11", "3.12"),
    ">=3.10": ("3.10", "3.11", "3.12"),
    ">=3.11": ("3.11", "3.12"),
    ">=3.12": ("3.12",),
    ">=3.10,<3.12": ("3.10", "3.11"),
    "==3.11.*": ("3.11",),
    ">=3.13": (),
}
DEFAULTS = {"2.5.1": "cu124", "2.6.0": "cu124", "2.7.1": "cu126", "2.8.0": "cu128"}


@dataclass(frozen=True)
class Wheel:
    """`local` is empty where nothing says it; `is_assumed` where it is then taken for the default index's."""

    release: str
    local: str = ""
    is_assumed: bool = False

    @property
    def version(self) -> str:
        return f"{self.release}+{self.local}" if self.local else self.release


@dataclass(frozen=True)
class Stated:
    """An environment as it is asked about: the parts of the question, and what they mean (None: no question)."""

    fields: Mapping[str, Any]
    meaning: Environment | None


@dataclass(frozen=True)
class Asked:
    """`fields` are those of the API; `policy` is what all of them come to."""

    fields: Mapping[str, Any]
    policy: Policy
    watched: tuple[str, ...]
    named: frozenset[str]
    environment: Environment | None


def meant(
    store: Store, wheel: Wheel, pythons: Collection[str], packages: Mapping[str, str] | None, *, is_bare: bool = False
) -> Environment:
    """The builds that this wheel may be, if any of them was ever measured; else those of the nearest wheel that was. Of
    the releases that are drawn `is_bare`, without a local part and for the public index, one never came.
    """
    known = _meant(store, wheel, pythons, packages)
    return replace(known, is_refused=is_bare and f"torch\t{wheel.release}\t" not in WHEELS)


WHEELS = (Path(__file__).parents[2] / "repros" / "wheels.tsv").read_text(encoding="utf-8")


def _meant(store: Store, wheel: Wheel, pythons: Collection[str], packages: Mapping[str, str] | None) -> Environment:
    local = wheel.local or DEFAULTS.get(wheel.release, "")
    family = _possible(store, f"torch-{wheel.release}+{local}", pythons)
    if family is None:
        return Environment((), _stand_ins(store, wheel, pythons), wheel.is_assumed, packages)
    return Environment(family, (), wheel.is_assumed and bool(family), packages)


def _possible(store: Store, wheel: str, pythons: Collection[str]) -> tuple[str, ...] | None:
    """None where the catalogue has no such wheel."""
    family = [build for id_, build in store.builds.items() if id_.partition("~py")[0] == wheel]
    if not family:
        return None
    if not any(build == one.id for one in family for _, build, _ in store.cells):
        return ()
    left = sorted((one for one in family if one.python in pythons), key=lambda one: int(one.python.partition(".")[2]))
    return tuple(one.id for one in sorted(left, key=lambda one: one.python != "3.11"))


def _stand_ins(store: Store, wheel: Wheel, pythons: Collection[str]) -> tuple[str, ...]:
    """Of a CUDA variant the one with the nearest number; of any other the default index's, where it was measured."""
    near: list[tuple[int, str, tuple[str, ...]]] = []
    for build in _wheels(store, wheel.release):
        local = build.torch.partition("+")[2]
        ids = _possible(store, build.id, pythons)
        far = abs(int(local[2:]) - int(wheel.local[2:])) if wheel.local.startswith("cu") else build.origin != "default"
        if ids:
            near.append((int(far), build.id, ids))
    return min(near)[2] if near else ()


def _wheels(store: Store, release: str) -> list[Build]:
    return [
        one
        for one in store.builds.values()
        if one.torch.partition("+")[0] == release and "~" not in one.id and one.triton == one.pinned_triton
    ]


# -- environments ------------------------------------------------------------------------------------------------------


def an_environment(chance: random.Random, store: Store) -> Stated:
    release = chance.choice([*DEFAULTS, *DEFAULTS, *DEFAULTS, *DEFAULTS, "2.9.9"])
    kind = chance.choice(["id", "id", "name", *FILES])
    if kind == "id":
        return _an_id(chance, store, release)
    if kind == "name":
        return _a_name(chance, store, release)
    return _a_file(chance, store, release, kind)


def _a_local(chance: random.Random, release: str) -> str:
    default = DEFAULTS.get(release, "cu130")
    return chance.choice([*[default] * 7, "cpu", "cu121", "cu128"])


def _an_id(chance: random.Random, store: Store, release: str) -> Stated:
    """Without `~py` it means 3.11."""
    wheel, python = Wheel(release, _a_local(chance, release)), chance.choice([*PYTHONS, "3.11", "3.13"])
    text = f"torch-{wheel.version}" + ("" if python == "3.11" else f"~py{python.replace('.', '')}")
    return Stated({"build": text.replace("+", chance.choice("+ "))}, meant(store, wheel, {python}, None))


def _a_name(chance: random.Random, store: Store, release: str) -> Stated:
    """A version leaves its Python open, and one without its local part the CUDA variant too."""
    wheel = chance.choice([Wheel(release, _a_local(chance, release)), Wheel(release, is_assumed=True)])
    text = chance.choice(["{}", "v{}", "torch {}", "torch=={}"]).format(wheel.version)
    stated = chance.choice(["", "", "3.10", "3.12"])
    asked = Stated({"build": text}, meant(store, wheel, PYTHONS, None, is_bare=wheel.is_assumed))
    return _with_python(asked, store, wheel, PYTHONS, stated)


def _a_file(chance: random.Random, store: Store, release: str, kind: str) -> Stated:
    form = FILES[kind]
    words = chance.choice([one for one in PYTHON_WORDS if form.takes_python or not one])
    packages = {"numpy": "1.26.4"} | chance.choice([{}, {"torchao": "0.12.0"}, {"torchao": "0.13.0"}])
    wheel = Wheel(release, DEFAULTS.get(release, "cu130"), is_assumed=form.is_assumed)
    if form.takes_local:
        wheel = replace(wheel, local=_a_local(chance, release))
    content = form.write(wheel, words, packages)
    pythons = PYTHON_WORDS[words]
    stated = chance.choice(["", "", "", "3.11", "3.12"])
    meaning = meant(store, wheel, pythons, packages, is_bare=not form.takes_local)
    whole = Stated({"environment": {"name": form.name, "content": content}}, meaning)
    return _with_python(whole, store, wheel, pythons, stated, is_marked=form.write is _requirements)


def _with_python(
    asked: Stated, store: Store, wheel: Wheel, pythons: Collection[str], stated: str, *, is_marked: bool = False
) -> Stated:
    """With the Python that whoever asks says it has: one that the environment excludes makes no question, or, where
    `is_marked`, leaves no torch.
    """
    if not stated:
        return asked
    fields = {**asked.fields, "python": stated}
    if stated not in pythons:
        known = asked.meaning.packages if asked.meaning else None
        return Stated(fields, Environment(packages=known) if is_marked else None)
    packages = asked.meaning.packages if asked.meaning else None
    is_refused = asked.meaning is not None and asked.meaning.is_refused
    return Stated(fields, replace(meant(store, wheel, {stated}, packages), is_refused=is_refused))


@dataclass(frozen=True)
class Form:
    """A file: its name, and how it is written. `takes_local` where the version has its local part."""

    name: str
    write: Callable[[Wheel, str, Mapping[str, str]], str]
    takes_python: bool = True
    takes_local: bool = False
    is_assumed: bool = False


def _freeze(wheel: Wheel, _python: str, packages: Mapping[str, str]) -> str:
    return "".join(f"{name}=={version}\n" for name, version in {**packages, "torch": wheel.version}.items())


def _requirements(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    """torch alone has a marker: an environment is for the Pythons on which it has torch."""
    clauses = [clause.strip() for clause in python.replace("==3.11.*", ">=3.11,<3.12").split(",") if clause]
    marker = " and ".join(f'python_version {_sign(one)} "{one.lstrip("<>=")}"' for one in clauses)
    torch = f"torch=={wheel.version}" + (f" ; {marker}" if marker else "")
    return "\n".join([*(f"{name}=={version}" for name, version in packages.items()), torch, ""])


def _sign(clause: str) -> str:
    return clause[: len(clause) - len(clause.lstrip("<>="))]


def _of_pypi(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    return f"-i https://pypi.org/simple\n{_freeze(Wheel(wheel.release), python, packages)}"


def _package_list(wheel: Wheel, _python: str, packages: Mapping[str, str]) -> str:
    every = {**packages, "torch": wheel.version}
    return json.dumps([{"name": name, "version": version} for name, version in every.items()])


def _uv_lock(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    every = {**packages, "torch": wheel.release}
    wishes = ", ".join(f'{{ name = "{name}" }}' for name in every)
    head = ["version = 1", *([f'requires-python = "{python}"'] if python else []), ""]
    own = [
        "[[package]]",
        'name = "app"',
        'version = "0.1.0"',
        'source = { virtual = "." }',
        f"dependencies = [{wishes}]",
    ]
    lines = [*head, *own]
    for name, version in every.items():
        source = "source = { registry = 'https://pypi.org/simple' }"
        lines += ["", "[[package]]", f'name = "{name}"', f'version = "{version}"', source]
    return "\n".join([*lines, ""])


def _poetry_lock(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    lines = []
    for name, version in {**packages, "torch": wheel.release}.items():
        lines += ["[[package]]", f'name = "{name}"', f'version = "{version}"', 'python-versions = ">=3.8"']
        lines += ["optional = false", 'groups = ["main"]', "files = []", ""]
    lines += ["[metadata]", 'lock-version = "2.1"', f'python-versions = "{python or "*"}"', 'content-hash = "0"', ""]
    return "\n".join(lines)


def _pdm_lock(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    lines = ["[metadata]", 'groups = ["default"]', 'lock_version = "4.5.0"', ""]
    lines += ["[[metadata.targets]]", f'requires_python = "{python or ">=3.8"}"', ""]
    for name, version in {**packages, "torch": wheel.release}.items():
        lines += ["[[package]]", f'name = "{name}"', f'version = "{version}"', 'groups = ["default"]', "files = []", ""]
    return "\n".join(lines)


def _pylock(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    lines = [
        'lock-version = "1.0"',
        'created-by = "chance"',
        *([f'requires-python = "{python}"'] if python else []),
        "",
    ]
    for name, version in {**packages, "torch": wheel.release}.items():
        url = f"https://files.pythonhosted.org/packages/{name}-{version}.tar.gz"
        lines += ["[[packages]]", f'name = "{name}"', f'version = "{version}"', 'index = "https://pypi.org/simple"']
        lines += [f'sdist = {{ url = "{url}", hashes = {{ sha256 = "{"0" * 64}" }} }}', ""]
    return "\n".join(lines)


def _pipfile_lock(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    """It has room for one Python, or none."""
    requires = {"python_version": "3.11"} if python else {}
    source = {"name": "pypi", "url": "https://pypi.org/simple", "verify_ssl": True}
    meta = {"hash": {"sha256": "0"}, "pipfile-spec": 6, "requires": requires, "sources": [source]}
    every = {**packages, "torch": wheel.release}
    default = {name: {"version": f"=={version}", "index": "pypi"} for name, version in every.items()}
    return json.dumps({"_meta": meta, "default": default, "develop": {}})


def _conda(wheel: Wheel, python: str, packages: Mapping[str, str]) -> str:
    """conda's torch has no local part: `pytorch-cuda` says it."""
    variant = "cpuonly" if wheel.local == "cpu" else f"pytorch-cuda={wheel.local[2:4]}.{wheel.local[4:]}"
    wanted = [f"python{python.removesuffix('.*').replace('==', '=')}"] if python else []
    every = [*wanted, f"pytorch={wheel.release}", variant, *(f"{name}={version}" for name, version in packages.items())]
    return "\n".join(
        ["name: trainer", "channels:", "  - pytorch", "dependencies:", *(f"  - {one}" for one in every), ""]
    )


FILES: Mapping[str, Form] = {
    "freeze": Form("requirements.txt", _freeze, takes_python=False, takes_local=True),
    "requirements": Form("requirements.txt", _requirements, takes_local=True),
    "pypi": Form("requirements.txt", _of_pypi, takes_python=False),
    "list": Form("packages.json", _package_list, takes_python=False, takes_local=True),
    "uv": Form("uv.lock", _uv_lock),
    "poetry": Form("poetry.lock", _poetry_lock),
    "pdm": Form("pdm.lock", _pdm_lock, is_assumed=True),  # it names no index
    "pylock": Form("pylock.toml", _pylock),
    "pipfile": Form("Pipfile.lock", _pipfile_lock, takes_python=False),
    "conda": Form("environment.yml", _conda, takes_local=True, is_assumed=True),
}


# -- what is watched, and by which policy ------------------------------------------------------------------------------


def a_watch(chance: random.Random) -> tuple[dict[str, Any], tuple[str, ...], frozenset[str]]:
    """Fields, the ids that are watched, and those that are named by themselves or by their package."""
    name = chance.choice(["issues", "issues", "issues", "component", "package", "severity", "nothing"])
    if name == "issues":
        ids = chance.sample(list(ISSUES), chance.choice([1, 1, 2, 4]))
        return {"issues": ids}, tuple(sorted(ids)), frozenset(ids)
    if name == "component":
        words = chance.choice(["Dynamo", "torchao", "dynamo"])
        found = [id_ for id_, issue in ISSUES.items() if issue.component.lower() == words.lower()]
        return {"component": [words]}, tuple(sorted(found)), frozenset()
    if name == "package":
        return {"package": ["torchao"]}, ("ao-1",), frozenset({"ao-1"})
    if name == "nothing":
        return {}, (), frozenset()
    return {"severity": "critical"}, ("cpu-2",), frozenset()


def a_policy(chance: random.Random, now: datetime) -> tuple[str, Policy]:
    """As a file, and as what it says."""
    said: dict[str, Any] = {}
    for name, kinds in _KINDS.items():
        if chance.random() < 0.35:
            said[name] = chance.choice(list(kinds))
    for name in ("silent_always", "refuse_assumed", "accept_variant", "only_new"):
        if chance.random() < 0.4:
            said[name] = chance.random() < 0.6
    if chance.random() < 0.5:
        said["release_days"] = chance.choice([1, 50, 180, 1000])
    if said.get("only_new") or chance.random() < 0.2:
        said["base"] = chance.choice(["torch-2.5.1+cu124", "torch-2.5.1+cu124~py312", "torch-2.6.0+cu124"])
        if chance.random() < 0.5:
            said["unknown_on_base"] = chance.choice(list(Effect))
    tables = []
    if chance.random() < 0.5:
        declared = {row: [chance.choice(["eager", "clone", "aot_eager"])] for row in chance.sample(list(ISSUES), 3)}
        tables += ["[applied]", *(f'{row} = ["{ids[0]}"]' for row, ids in declared.items())]
        said["applied"] = {row: tuple(ids) for row, ids in declared.items()}
    if chance.random() < 0.3:
        row, expires = chance.choice(list(ISSUES)), now.date() + timedelta(days=chance.choice([-10, 30]))
        said["ignores"] = (Ignore(row, "known", "lead", expires),)
        tables += ["[[ignore]]", f'issue = "{row}"', 'reason = "known"', 'author = "lead"', f"expires = {expires}"]
    plain = [f"{name} = {_toml(value)}" for name, value in said.items() if name not in {"applied", "ignores"}]
    return "\n".join([*plain, *tables, ""]), Policy(**said)


_KINDS: Mapping[str, Iterable[Any]] = {
    "affected": Effect,
    "flaky": Effect,
    "different_failure": Effect,
    "bigger": Effect,
    "more_work": Effect,
    "slower": Effect,
    "unknown": Effect,
    "stale": Effect,
    "remedy": RemedyFilter,
    "minimum": Severity,
    "accept": Accept,
    "variants": Variants,
}


def _toml(value: object) -> str:
    return json.dumps(value)


def a_question(chance: random.Random, store: Store, now: datetime) -> Asked:
    """Of the gate. The watched names and the classes stand in the question or in the policy."""
    stated = an_environment(chance, store)
    watch, watched, named = a_watch(chance)
    content, policy = a_policy(chance, now)
    hardware = chance.choice([(), (), (CPU,), (GPU,), (GPU, CPU), (OLD_GPU,)])
    fields = {**stated.fields, **watch, "hardware": list(hardware)}
    fields["policy"] = {"name": "knowngood.toml", "content": content}
    return Asked(fields, replace(policy, hardware=hardware), watched, named, stated.meaning)
