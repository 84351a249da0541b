"""New releases on an index: the builds they become, and the remark where one cannot."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pytest
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.packages import IndexFile
from knowngood.measure.discovery.releases import (
    BuildProposal,
    Release,
    WheelFacts,
    foreign_triton,
    main_wheel,
    new_releases,
    pinned_triton,
    propose_build,
    read_wheel_facts,
    releases_of,
    usual_pythons,
)
from tests.make import make_build

TODAY = date(2026, 11, 21)
LINUX = "manylinux_2_28_x86_64"


def file(name: str, day: str = "", yanked: str | None = None) -> IndexFile:
    uploaded = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC) if day else None
    return IndexFile(name, f"https://index.example/{name}", uploaded, yanked)


def wheels(
    project: str, version: str, day: str = "", pythons: Sequence[str] = ("311", "312", "313")
) -> list[IndexFile]:
    return [file(f"{project}-{version}-cp{one}-cp{one}-{LINUX}.whl", day) for one in pythons]


def build(torch: str, released: str, **more: object) -> Build:
    return make_build(torch, released=date.fromisoformat(released), **more)


CATALOGUE = [
    build("2.14.1+cu130", "2026-09-30"),
    *(build("2.15.0+cu132", "2026-10-28", python=one, pinned_triton="3.9.0") for one in ("3.11", "3.12", "3.13")),
    build("2.15.0+cu126", "2026-10-28", origin="cu126", pinned_triton="3.9.0"),
]
TRITONS = releases_of([*wheels("triton", "3.9.0", "2026-10-20"), *wheels("triton", "3.10.0", "2026-11-10")])


def versions(releases: Sequence[Release]) -> list[str]:
    return [str(one.version) for one in releases]


def test_only_final_releases_with_wheels_for_linux_on_x86_64_count() -> None:
    names = [
        f"torch-2.16.0-cp311-cp311-{LINUX}.whl",
        f"torch-2.16.0-cp313-cp313t-{LINUX}.whl",
        "torch-2.16.0-cp312-cp312-win_amd64.whl",
        "torch-2.16.0-cp312-cp312-manylinux_2_28_aarch64.whl",
        f"torch-2.17.0rc1-cp311-cp311-{LINUX}.whl",
        f"torch-2.17.0.dev20261101-cp311-cp311-{LINUX}.whl",
        f"torch-2.16.0+cpu-cp311-cp311-{LINUX}.whl",
        "torch-2.16.0.tar.gz",
        "torch-not-a-wheel.whl",
        "",
    ]
    (release,) = releases_of(file(name) for name in names).values()
    assert (str(release.version), release.pythons) == ("2.16.0", ("3.11",))


def test_a_wheel_of_the_stable_abi_serves_every_newer_python() -> None:
    names = [f"triton-3.9.0-cp311-cp311-{LINUX}.whl", f"triton-3.9.0-cp312-abi3-{LINUX}.whl"]
    (release,) = releases_of(map(file, names)).values()
    served = {
        python: wheel.name if (wheel := release.wheels.get(python)) else None for python in ("3.10", "3.11", "3.13")
    }
    assert served == {"3.10": None, "3.11": names[0], "3.13": names[1]}
    assert release.pythons == ("3.11", "3.12", "3.13", "3.14", "3.15")


def test_a_release_is_dated_by_its_first_wheel_and_yanked_when_all_of_it_is() -> None:
    half = releases_of(
        [
            file(f"torch-2.16.0-cp311-cp311-{LINUX}.whl", "2026-12-02", yanked="broken"),
            file(f"torch-2.16.0-cp312-cp312-{LINUX}.whl", "2026-12-01"),
        ]
    )[Version("2.16.0")]
    assert (half.released, half.yanked, half.pythons) == (date(2026, 12, 1), None, ("3.12",))
    whole = releases_of([file(f"torch-2.16.0-cp311-cp311-{LINUX}.whl", yanked="broken")])[Version("2.16.0")]
    assert whole.yanked == "broken"


def test_new_is_what_is_newer_or_came_out_later_and_what_is_yanked_is_neither() -> None:
    listed = releases_of(
        [
            *wheels("torch", "2.13.9", "2026-01-01"),
            *wheels("torch", "2.14.0", "2026-09-02"),
            *wheels("torch", "2.14.1", "2026-09-30"),
            *wheels("torch", "2.14.2", "2026-11-01"),
            *wheels("torch", "2.14.3"),
            *wheels("torch", "2.15.0", "2026-10-28"),
            *wheels("torch", "2.16.0", "2026-11-20"),
            *wheels("torch", "2.18.0"),
            file(f"torch-2.17.0-cp311-cp311-{LINUX}.whl", "2026-11-20", yanked=""),
        ]
    )
    fresh, older = new_releases(listed, CATALOGUE)
    assert (versions(fresh), versions(older)) == (["2.14.2", "2.16.0", "2.18.0"], ["2.14.3"])
    fresh, older = new_releases(listed, CATALOGUE, Version("2.14"))
    assert (versions(fresh), versions(older)) == (["2.14.0", "2.14.2", "2.14.3", "2.16.0", "2.18.0"], [])


NEW_STYLE = """\
Metadata-Version: 2.4
Name: torch
Requires-Dist: networkx>=2.5.1
Requires-Dist: cuda-toolkit[cublas,cudart]==13.2.2; platform_system == "Linux"
Requires-Dist: cuda-bindings<14,>=13.0.3; platform_system == "Linux" and python_version < "3.15"
Requires-Dist: triton~=3.9.0; platform_system == "Linux" and python_version < "3.16"
Requires-Dist: not a requirement at all !
Requires-Dist: opt-einsum>=3.3; extra == "opt-einsum"

Requires-Dist: triton==6.6.6
"""
OLD_STYLE = """\
Metadata-Version: 2.1
Requires-Dist: nvidia-cuda-runtime-cu12 (==12.1.105) ; platform_system == "Linux" and platform_machine == "x86_64"
Requires-Dist: nvidia-cublas-cu12 (==12.4.5.8) ; platform_system == "Linux"
Requires-Dist: triton (==2.2.0) ; platform_system == "Linux" and python_version < "3.12"
"""
VERSION_PY = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.15.0+cu132'
debug = False
cuda: Optional[str] = '13.2'
git_version = 'd0f2af8b66b20da4baa50644c0cd3f887a2eae2e'
hip: Optional[str] = None
"""


@pytest.mark.parametrize(
    ("metadata", "version_py", "python", "words"),
    [
        (NEW_STYLE, "", "3.11", ("cu132", "13.2", "~=3.9.0", "")),
        (OLD_STYLE, "", "3.11", ("cu121", "12.1", "==2.2.0", "")),
        (OLD_STYLE, "", "3.12", ("cu121", "12.1", None, "")),
        ("", "", "3.11", ("cpu", None, None, "")),
        (NEW_STYLE, VERSION_PY, "3.11", ("cu132", "13.2", "~=3.9.0", "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e")),
        ("", "__version__ = '2.15.0+cpu'\ncuda: Optional[str] = None\n", "3.11", ("cpu", None, None, "")),
        (NEW_STYLE, "cuda = '13.2\"]\\nx'\ngit_version = 'HEAD'\n", "3.11", ("cu132", "13.2", "~=3.9.0", "")),
        (NEW_STYLE, "__version__ = '2.15.0+\"x'\ncuda = 'a lot'\n", "3.11", ("cu132", "13.2", "~=3.9.0", "")),
    ],
)
def test_cuda_and_triton_are_read_from_what_the_wheel_says(
    metadata: str, version_py: str, python: str, words: tuple[str, str | None, str | None, str]
) -> None:
    found = read_wheel_facts(metadata, version_py, python)
    triton = str(found.triton) if found.triton is not None else None
    assert (found.local, found.cuda, triton, found.git) == words


def test_an_import_that_differs_from_its_pins_wins_and_is_remarked_on() -> None:
    found = read_wheel_facts(OLD_STYLE, "__version__ = '2.2.2+cu118'\ncuda = '11.8'\n", "3.11")
    assert (found.local, found.cuda, found.remark) == (
        "cu118",
        "11.8",
        "its import says CUDA 11.8, its requirements 12.1",
    )


def test_a_triton_that_is_not_pinned_exactly_is_the_newest_of_its_days_that_fits() -> None:
    spec = read_wheel_facts("Requires-Dist: triton>=3.9", "", "3.11").triton
    assert spec is not None
    assert pinned_triton(spec, TRITONS, "3.11", date(2026, 11, 1)) == Version("3.9.0")
    assert pinned_triton(spec, TRITONS, "3.11", date(2026, 12, 1)) == Version("3.10.0")
    assert pinned_triton(spec, TRITONS, "3.10", date(2026, 12, 1)) is None


def release(version: str, day: str = "", pythons: Sequence[str] = ("311", "312", "313")) -> Release:
    return releases_of(wheels("torch", version, day, pythons))[Version(version)]


def words(triton: str = "triton~=3.9.0") -> WheelFacts:
    return read_wheel_facts(f"Requires-Dist: cuda-toolkit==13.2.2\nRequires-Dist: {triton}", "", "3.11")


def test_a_release_becomes_a_build_with_the_pythons_that_the_catalogue_measures() -> None:
    made = propose_build(
        release("2.16.0", "2026-10-30", ("310", "311", "312", "314")), words(), TRITONS, ("3.12", "3.13"), TODAY
    )
    assert isinstance(made, BuildProposal)
    assert (made.torch, made.local, made.cuda, made.triton) == ("2.16.0", "cu132", "13.2", "3.9.0")
    assert (made.python, made.pythons) == ("3.11", ("3.12",))
    assert (made.released, made.as_of) == (date(2026, 10, 30), date(2026, 11, 20))
    assert made.remarks[:2] == (
        "wheels for 3.10, 3.11, 3.12, 3.14 on Linux x86-64",
        "left out: 3.10, 3.14 (no Python of the catalogue's newest build, or no Triton for it)",
    )


@pytest.mark.parametrize(
    ("day", "as_of"),
    [("2026-11-19", TODAY), ("2026-06-01", date(2026, 6, 22)), ("", TODAY), ("2026-11-25", date(2026, 11, 25))],
)
def test_packages_are_those_of_some_weeks_after_the_release_and_never_before_it(day: str, as_of: date) -> None:
    made = propose_build(release("2.16.0", day), words("triton==3.9.0"), TRITONS, (), TODAY)
    assert isinstance(made, BuildProposal)
    assert made.as_of == as_of


def test_without_a_wheel_for_the_default_python_the_first_usual_one_stands_in() -> None:
    assert main_wheel(release("2.16.0", "", ("313", "314")), ("3.12", "3.13"))[0] == "3.13"
    assert main_wheel(release("2.16.0", "", ("314", "315")), ("3.12", "3.13"))[0] == "3.14"


def test_a_triton_that_the_index_lacks_is_a_sentence_and_no_build() -> None:
    told = propose_build(release("2.16.0"), words("triton~=4.0"), TRITONS, (), TODAY)
    assert told == "torch 2.16.0 asks for triton~=4.0, and the index has none for Python 3.11"


def test_a_new_triton_is_forced_on_the_newest_torch_once() -> None:
    made = foreign_triton(CATALOGUE, [], TRITONS, TODAY)
    assert made is not None
    assert (made.torch, made.triton, made.with_triton) == ("2.15.0", "3.9.0", "3.10.0")
    assert (made.python, made.pythons, made.as_of) == ("3.11", ("3.12", "3.13"), TODAY)
    forced = build("2.15.0+cu132", "2026-10-28", triton="3.10.0", pinned_triton="3.9.0")
    assert foreign_triton([*CATALOGUE, forced], [], TRITONS, TODAY) is None
    pinning = propose_build(release("2.16.0"), words("triton==3.10.0"), TRITONS, (), TODAY)
    assert isinstance(pinning, BuildProposal)
    assert foreign_triton(CATALOGUE, [pinning], TRITONS, TODAY) is None


def test_a_withdrawn_triton_is_forced_on_nothing() -> None:
    withdrawn = releases_of([file(f"triton-3.10.0-cp311-cp311-{LINUX}.whl", yanked="")])
    assert foreign_triton(CATALOGUE, [], withdrawn, TODAY) is None


def test_the_usual_pythons_are_those_of_the_newest_build() -> None:
    assert usual_pythons(CATALOGUE) == ("3.12", "3.13")
    assert usual_pythons([]) == ()
