"""My build: the reader's own build, hardware class and packages beside torch. Chosen once and kept in cookies; an
address may say build and hardware too, so that a link which is shared answers for the same build whoever opens it.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from fastapi import Request, Response

from knowngood.domain.builds.build import Build, parse_build_id
from knowngood.domain.builds.build_names import find_build_or_wheel
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.hardware_names import hardware_named

MY_BUILD = "/my-build"
BUILD_COOKIE, HARDWARE_COOKIE, PACKAGES_COOKIE = "build", "hardware", "packages"
BUILD_PARAMETER, HARDWARE_PARAMETER = "mine", "gpu"

YEAR_S = 365 * 24 * 3600

_LONGEST, _MOST_PACKAGES = 100, 40
_PACKAGE = re.compile(r"([a-z0-9][a-z0-9-]{0,60})(?:==([\w.+!-]{1,60}))?")


@dataclass(frozen=True)
class MyBuild:
    """The reader's words for what they have: a catalogue may know neither. Empty: they did not say.

    `hardware` is a class or the name of a GPU, `packages` are those that some issue or wheel says something of, as
    `xformers==0.0.31.post1`. `is_shared` where the address says it, and not a cookie.
    """

    build: str = ""
    hardware: str = ""
    packages: tuple[str, ...] = ()
    is_shared: bool = False

    @property
    def versions(self) -> Mapping[str, str]:
        """The packages with their versions (empty: not said)."""
        return {name: version for name, _, version in (package.partition("==") for package in self.packages)}

    @property
    def words(self) -> str:
        """`torch 2.7.1 cu126 · H100`."""
        return " · ".join(part for part in (_in_words(self.build), self.hardware.removeprefix("cuda-")) if part)

    def build_among(self, builds: Mapping[str, Build]) -> Build | None:
        """None too where the catalogue lacks it: a cookie outlives what it names."""
        with suppress(UnknownBuild):
            return find_build_or_wheel(self.build, builds) if self.build else None
        return None

    def hardware_among(self, classes: Collection[str]) -> str:
        """The class of a GPU that is named (`H100`) too; empty where nobody measured on it."""
        gpu = hardware_named(self.hardware) if self.hardware else None
        class_ = gpu.hardware if gpu else ""
        return class_ if class_ in classes else ""


NOBODYS = MyBuild()


def read_my_build(request: Request) -> MyBuild:
    """An address that names a build outweighs both cookies: what is shared means the same to everybody."""
    parameters = request.query_params
    if BUILD_PARAMETER in parameters or HARDWARE_PARAMETER in parameters:
        return MyBuild(
            _short(parameters.get(BUILD_PARAMETER)), _short(parameters.get(HARDWARE_PARAMETER)), is_shared=True
        )
    build, hardware = (_short(request.cookies.get(name)) for name in (BUILD_COOKIE, HARDWARE_COOKIE))
    return MyBuild(build, hardware, read_packages(request.cookies.get(PACKAGES_COOKIE, "")))


def read_packages(text: str) -> tuple[str, ...]:
    """The packages of a text, a blank between two; a word that is none is left out."""
    return tuple(word for word in text.split()[:_MOST_PACKAGES] if _PACKAGE.fullmatch(word))


def remember(
    response: Response, build: str | None = None, hardware: str | None = None, packages: str | None = None
) -> None:
    """Keep them in this browser. Empty: forget what was kept; None: leave it as it is."""
    for name, value in ((BUILD_COOKIE, build), (HARDWARE_COOKIE, hardware), (PACKAGES_COOKIE, packages)):
        if value:
            response.set_cookie(name, value, max_age=YEAR_S, httponly=True, samesite="lax")
        elif value is not None:
            response.delete_cookie(name, httponly=True, samesite="lax")


def _short(text: str | None) -> str:
    """A name as it may be one: no catalogue has longer ones."""
    return (text or "").strip()[:_LONGEST]


def _in_words(build: str) -> str:
    """`torch 2.7.1 cu126` of an id, a wheel's too; any other text unchanged."""
    try:
        id_ = parse_build_id(build if build.startswith("torch-") else f"torch-{build}")
    except UnknownBuild:
        return build
    parts = (
        "torch",
        id_.release,
        id_.version.local or "",
        f"Triton {id_.triton}" if id_.triton else "",
        f"py{id_.python}" if "~py" in build else "",
    )
    return " ".join(part for part in parts if part)
