from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.errors import OtherPython, UnknownBuild
from knowngood.environments.resolve import (
    CONDA,
    PinnedPackage,
    ResolvedBuild,
    StatedEnvironment,
    resolve,
    resolve_build,
    variant_of,
)
from knowngood.environments.wheels.table import shipped_wheels
from tests.make import make_build

PYPI = "https://pypi.org/simple"
WHL = "https://download.pytorch.org/whl"

_ALL = [
    make_build("2.5.1+cu124", pinned_triton="3.1.0"),
    make_build("2.5.1+cu118", pinned_triton="3.1.0", origin="cu118"),
    make_build("2.6.0+cu124"),
    make_build("2.6.0+cu124", python="3.12"),
    make_build("2.6.0+cu124", python="3.13"),
    make_build("2.6.0+cu126", origin="cu126"),
    make_build("2.6.0+cu124", triton="3.3.0"),
    make_build("2.7.1+cu126", pinned_triton="3.3.1", python="3.12"),
    make_build("2.7.1+cu126", pinned_triton="3.3.1", python="3.13"),
    make_build("2.14.0+cu130", pinned_triton="3.8.0"),
]
BUILDS: dict[str, Build] = {build.id: build for build in _ALL}
UNTESTED = {"torch-2.14.0+cu130", "torch-2.6.0+cu124~py313"}
NAMES = BuildNames(BUILDS)
TESTED = set(BUILDS) - UNTESTED
WHEELS = shipped_wheels()


def stated(
    version: str, *pins: PinnedPackage, python: str = "3.11", origin: str = "", index: str = ""
) -> StatedEnvironment:
    return StatedEnvironment("pip freeze", (PinnedPackage("torch", version, origin, index), *pins), python)


def runtime(version: str) -> PinnedPackage:
    return PinnedPackage("nvidia-cuda-runtime-cu12", version)


def found(environment: StatedEnvironment) -> ResolvedBuild:
    return resolve(environment, NAMES, TESTED, WHEELS)


@pytest.mark.parametrize(
    ("version", "build"),
    [
        ("2.6.0+cu124", "torch-2.6.0+cu124"),
        ("2.6.0+cu126", "torch-2.6.0+cu126"),
        ("2.5.1+cu118", "torch-2.5.1+cu118"),
        ("v2.6.0+CU124", "torch-2.6.0+cu124"),
        ("2.6+cu124", "torch-2.6.0+cu124"),
        ("2.6.0+cu118", None),
        ("2.6.0+cu128", None),
        ("2.6.0+cu12", None),
        ("2.6.0+rocm6.3", None),
        ("2.6.0+cpu", None),
        ("2.6.0+cpu.cxx11.abi", None),
        ("2.6.0+xpu", None),
        ("2.6.0+cu124.post1", None),
        ("2.6.0.post1", None),
        ("2.6.0.post1+cu124", None),
        ("2.6.0rc1", None),
        ("2.6.0rc1+cu124", None),
        ("2.6.0a0+git1234", None),
        ("2.6.0a0+ecf131c.nv25.1", None),
        ("2.7.0.dev20250101+cu124", None),
        ("2.16.0.dev20261120+cu132", None),
        ("2.16.0.dev20261120", None),
        ("2.6.1+cu124", None),
        ("2.6.1", None),
        ("2.7.0", None),
        ("2.60.0+cu124", None),
        ("1!2.6.0+cu124", None),
        ("3.0.0", None),
    ],
)
def test_a_version_is_exactly_its_build_or_none(version: str, build: str | None) -> None:
    resolved = found(stated(version))
    assert resolved.build == build
    assert not resolved.is_assumed
    assert (resolved.note == "") == (build is not None)
    assert not (build and resolved.nearest)


@pytest.mark.parametrize(
    ("environment", "build"),
    [
        (stated("2.6.0", runtime("12.4.127")), "torch-2.6.0+cu124"),
        (stated("2.6.0", index=PYPI), "torch-2.6.0+cu124"),
        (stated("2.6.0", index="https://files.pythonhosted.org/packages/e5"), "torch-2.6.0+cu124"),
        (stated("2.6.0", index=f"{WHL}/cu126"), "torch-2.6.0+cu126"),
        (stated("2.6.0", index="https://mirror.example/pytorch-wheels/cu126/"), "torch-2.6.0+cu126"),
        (stated("2.6.0", runtime("12.6.77"), index=f"{WHL}/cu126"), "torch-2.6.0+cu126"),
        (stated("2.6.0", PinnedPackage("cuda-toolkit", "12.4.1")), "torch-2.6.0+cu124"),
    ],
)
def test_a_bare_version_is_the_build_that_its_index_or_its_cuda_libraries_say(
    environment: StatedEnvironment, build: str
) -> None:
    resolved = found(environment)
    assert (resolved.build, resolved.is_assumed, resolved.note) == (build, False, "")


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        (stated("2.6.0"), "without its CUDA variant; taken as the default index's 2.6.0 (CUDA 12.4)"),
        (stated("2.6.0", index="https://nexus.example/simple"), "https://nexus.example/simple may hold other wheels"),
        (stated("2.6.0+cu124", runtime("12.6.77")), "nvidia-cuda-runtime-cu12 12.6.77 is listed with"),
        (
            stated("2.6.0+cu124", origin="https://nexus.example/torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl"),
            "the wheel comes from nexus.example",
        ),
    ],
)
def test_what_an_environment_leaves_open_is_assumed_and_said(environment: StatedEnvironment, word: str) -> None:
    resolved = found(environment)
    assert resolved.build == "torch-2.6.0+cu124"
    assert resolved.is_assumed
    assert word in resolved.note


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        (StatedEnvironment("uv.lock", (PinnedPackage("einops", "0.8.1"),)), "This uv.lock has no torch"),
        (
            StatedEnvironment("x", (PinnedPackage("torch", line=7),)),
            "torch is named in line 7 without an exact",
        ),
        (stated("2.6.0", PinnedPackage("torch", "2.5.1")), "holds 2 torches: 2.6.0 and 2.5.1"),
        (stated("2.6.0", PinnedPackage("torch", "2.6.0+cpu")), "holds 2 torches"),
        (stated("2.6.0a0", origin="git+https://github.com/pytorch/pytorch"), "torch is built from source"),
        (stated("", origin="git@github.com:pytorch/pytorch"), "source (git@github.com:pytorch/pytorch)"),
        (stated("2.6.0", origin="../pytorch"), "torch comes from the local path ../pytorch"),
        (stated("2.6.0", origin="file:///wheels/torch-2.6.0-cp311-cp311-linux_x86_64.whl"), "local path"),
        (
            stated("2.6.0", origin="https://x.example/torch-2.6.0-cp311-cp311-win_amd64.whl"),
            "platform (torch-2.6.0-cp311-cp311-win_amd64.whl)",
        ),
        (stated("2.6.0", origin="https://x.example/torch-2.6.0-cp311-none-macosx_11_0_arm64.whl"), "another platform"),
        (stated("2.6.0", origin="https://x.example/torch-2.6.0.tar.gz"), "is no wheel"),
        (stated("2.6.0", origin="https://x.example/pytorch/osx-arm64/pytorch-2.6.0-a_0.conda"), "Linux x86_64"),
        (stated("2.6.0-my"), '"2.6.0-my" is no version of torch'),
        (stated("2.6.0", runtime("12.6.77")), "built for CUDA 12.4: the file does not say which build it is"),
        (stated("2.6.0", runtime("12.4.127"), index=f"{WHL}/cu126"), "built for CUDA 12.6"),
        (stated("2.6.0", runtime("12.4.1"), runtime("12.6.7")), "does not say which build it is"),
        (stated("2.6.0", index=WHL), "holds every variant of torch 2.6.0"),
        (stated("2.6.0", index=f"{WHL}/torch_stable.html"), "holds every variant"),
        (
            StatedEnvironment(
                "requirements.txt", (PinnedPackage("torch", "2.6.0"),), indexes=(f"{WHL}/cu126", f"{WHL}/cpu")
            ),
            "indexes of cpu and cu126 are stated",
        ),
        (
            stated("2.6.0+cu124", PinnedPackage("triton", "3.2.0"), PinnedPackage("triton", "3.3.0")),
            "holds Triton 3.2.0 and 3.3.0",
        ),
        (
            stated("2.6.0+cu124", PinnedPackage("triton", "3.2.0", "git+https://x.example/triton")),
            "Triton comes from git+",
        ),
        (stated("2.6.0+cu124", PinnedPackage("triton", "three")), '"three" is no version of Triton'),
        (stated("2.14.0+cu130"), "torch 2.14.0 (CUDA 13.0) is in the catalogue, and no evidence of it is stored here"),
        (stated("2.6.0+git1"), "No such build is in the catalogue: torch 2.6.0+git1"),
        (
            stated("2.6.0+cu124", PinnedPackage("triton", "3.3.1")),
            "No such build is in the catalogue: torch 2.6.0+cu124 with",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_one_build_says_why_and_names_none(environment: StatedEnvironment, word: str) -> None:
    resolved = found(environment)
    assert resolved.build is None
    assert not resolved.is_assumed
    assert word in resolved.note


def test_an_index_of_the_whole_file_decides_the_variant_of_a_bare_version() -> None:
    for index, build in [(f"{WHL}/cu126", "torch-2.6.0+cu126"), (f"{WHL}/cpu", None), (f"{WHL}/rocm6.3", None)]:
        environment = StatedEnvironment("requirements.txt", (PinnedPackage("torch", "2.6.0"),), "3.11", (PYPI, index))
        assert found(environment).build == build
    nightly = StatedEnvironment("x", (PinnedPackage("torch", "2.16.0.dev20261120"),), "3.11", (f"{WHL}/nightly/cu132",))
    assert found(nightly).note == "No such build is in the catalogue: torch 2.16.0.dev20261120+cu132"


def test_an_index_that_is_only_pypi_makes_a_bare_version_exact() -> None:
    resolved = found(StatedEnvironment("requirements.txt", (PinnedPackage("torch", "2.6.0"),), "3.11", (PYPI,)))
    assert (resolved.build, resolved.is_assumed) == ("torch-2.6.0+cu124", False)


@pytest.mark.parametrize(
    ("triton", "build"),
    [
        (None, "torch-2.6.0+cu124"),
        (PinnedPackage("triton"), "torch-2.6.0+cu124"),
        (PinnedPackage("triton", "3.2.0"), "torch-2.6.0+cu124"),
        (PinnedPackage("triton", "3.2"), "torch-2.6.0+cu124"),
        (PinnedPackage("triton", "3.3.0"), "torch-2.6.0+cu124~triton-3.3.0"),
        (PinnedPackage("triton", "3.3.1"), None),
        (PinnedPackage("triton", "3.2.0+git35c6c7c6"), None),
        (PinnedPackage("pytorch-triton", "3.3.0"), "torch-2.6.0+cu124~triton-3.3.0"),
    ],
)
def test_another_triton_than_the_pin_is_another_build(triton: PinnedPackage | None, build: str | None) -> None:
    assert found(stated("2.6.0+cu124", *([triton] if triton else []))).build == build


@pytest.mark.parametrize(
    ("version", "python", "build"),
    [
        ("2.6.0+cu124", "3.11", "torch-2.6.0+cu124"),
        ("2.6.0+cu124", "3.12", "torch-2.6.0+cu124~py312"),
        pytest.param("2.6.0+cu124", "3.13", "torch-2.6.0+cu124~py313", id="never measured, but another Python was"),
        ("2.6.0+cu124", "3.9", None),
        ("2.7.1+cu126", "3.11", None),
        ("2.14.0+cu130", "3.11", None),
    ],
)
def test_a_python_that_is_stated_is_the_build_s_own_or_there_is_none(
    version: str, python: str, build: str | None
) -> None:
    resolved = found(stated(version, python=python))
    assert (resolved.build, resolved.is_assumed) == (build, False)
    assert resolved.pythons == ((python,) if build else ())
    assert resolved.description.endswith(f", Python {python}")


def test_a_python_that_the_catalogue_lacks_is_none_and_the_others_are_named() -> None:
    resolved = found(stated("2.6.0+cu124", python="3.9"))
    assert resolved.note == (
        "torch 2.6.0 (CUDA 12.4) is in the catalogue for Python 3.11, 3.12 and 3.13, not for Python 3.9"
    )
    assert resolved.nearest[0] == "torch-2.6.0+cu124"


@pytest.mark.parametrize(
    ("version", "possible", "build", "pythons", "word"),
    [
        ("2.6.0+cu124", (), "torch-2.6.0+cu124", ("3.11", "3.12", "3.13"), "it may be 3.11, 3.12 or 3.13"),
        ("2.6.0+cu124", ("3.12", "3.13", "3.14"), "torch-2.6.0+cu124~py312", ("3.12", "3.13"), "it may be 3.12 or"),
        ("2.6.0+cu124", ("3.13", "3.14"), "torch-2.6.0+cu124~py313", ("3.13",), "build only for 3.13"),
        ("2.6.0+cu126", (), "torch-2.6.0+cu126", ("3.11",), "the catalogue has this build only for 3.11"),
        ("2.7.1+cu126", (), "torch-2.7.1+cu126~py312", ("3.12", "3.13"), "it may be 3.12 or 3.13"),
        ("2.7.1+cu126", ("3.10", "3.11"), None, (), "for Python 3.12 and 3.13, not for Python 3.10, 3.11"),
        ("2.6.0+cu124", ("3.14", "3.15", "3.16", "3.17"), None, (), "not for Python 3.14, 3.15, 3.16, ..."),
    ],
)
def test_a_python_that_is_open_is_said_and_all_that_it_may_be_are_named(
    version: str, possible: tuple[str, ...], build: str | None, pythons: tuple[str, ...], word: str
) -> None:
    resolved = found(replace(stated(version, python=""), pythons=possible))
    assert (resolved.build, resolved.pythons, resolved.is_assumed) == (build, pythons, False)
    assert word in resolved.note
    assert resolved.description == f"torch {plain_name(version)}, Python not stated"


@pytest.mark.parametrize(
    ("version", "python", "variant", "pythons"),
    [
        ("2.6.0+cpu", "3.11", "torch-2.6.0+cu124", ("3.11",)),
        ("2.6.0+cpu", "3.13", "torch-2.6.0+cu124~py313", ("3.13",)),
        ("2.6.0+cpu", "", "torch-2.6.0+cu124", ("3.11", "3.12", "3.13")),
        ("2.6.0+cpu.cxx11.abi", "3.11", "torch-2.6.0+cu124", ("3.11",)),
        ("2.6.0+cu128", "3.11", "torch-2.6.0+cu126", ("3.11",)),
        ("2.6.0+cu128", "3.12", "torch-2.6.0+cu124~py312", ("3.12",)),
        ("2.5.1+cu121", "3.11", "torch-2.5.1+cu118", ("3.11",)),
        ("2.6.0+rocm6.3", "3.11", "", ()),
        ("2.6.0+xpu", "3.11", "", ()),
        ("2.6.0.dev20241112+cu128", "3.11", "", ()),
        ("2.7.1+cpu", "3.11", "", ()),
        ("2.7.0+cpu", "3.11", "", ()),
        ("2.14.0+cpu", "3.11", "", ()),
        ("2.6.0+git1234", "3.11", "", ()),
        ("2.6.0+cu124.post1", "3.11", "", ()),
    ],
)
def test_a_variant_that_the_catalogue_lacks_is_none_and_the_nearest_of_its_release_is_named(
    version: str, python: str, variant: str, pythons: tuple[str, ...]
) -> None:
    resolved = found(stated(version, python=python))
    assert (resolved.build, resolved.variant, resolved.pythons) == (None, variant, pythons)
    assert ("accept_variant" in resolved.note) == bool(variant)
    if variant:
        assert f"{plain_name(f'torch-{version}')} is not in the catalogue" in resolved.note
        assert f"the nearest tested build of that release is {plain_name(variant)}" in resolved.note
        assert "builds.toml" in resolved.note
        assert "accept_variant = true" in resolved.note


def test_a_variant_is_of_the_triton_that_is_stated() -> None:
    environment = stated("2.6.0+cpu", PinnedPackage("triton", "3.3.0"))
    assert found(environment).variant == "torch-2.6.0+cu124~triton-3.3.0"
    assert found(stated("2.6.0+cpu", PinnedPackage("triton", "3.3.1"))).variant == ""


@pytest.mark.parametrize(
    ("pins", "build", "word"),
    [
        (
            [PinnedPackage("pytorch-cuda", "12.4")],
            "torch-2.5.1+cu124",
            "apart from the wheel 2.5.1 (CUDA 12.4)",
        ),
        (
            [PinnedPackage("cuda-version", "11.8")],
            "torch-2.5.1+cu118",
            "apart from the wheel 2.5.1 (CUDA 11.8)",
        ),
        (
            [PinnedPackage("pytorch-cuda", "12.4.1")],
            "torch-2.5.1+cu124",
            "apart from the wheel 2.5.1 (CUDA 12.4)",
        ),
        (
            [PinnedPackage("pytorch-cuda", "12.4.*")],
            "torch-2.5.1+cu124",
            "apart from the wheel 2.5.1 (CUDA 12.4)",
        ),
        ([PinnedPackage("pytorch-cuda", "12.1")], None, "torch 2.5.1 (CUDA 12.1) is not in the catalogue"),
        ([PinnedPackage("cpuonly")], None, "torch 2.5.1 (CPU) is not in the catalogue"),
        ([], None, "leaves open what it is built for"),
        ([PinnedPackage("cpuonly"), PinnedPackage("pytorch-cuda", "12.4")], None, "leaves open what it is built for"),
        (
            [PinnedPackage("pytorch-cuda", "12")],
            None,
            'conda\'s pytorch 2.5.1 (CUDA "12") leaves open what it is built for',
        ),
        (
            [PinnedPackage("pytorch-cuda", "1+1")],
            None,
            'conda\'s pytorch 2.5.1 (CUDA "1+1") leaves open what it is built for',
        ),
        (
            [PinnedPackage("cuda-version", "x.y")],
            None,
            'conda\'s pytorch 2.5.1 (CUDA "x.y") leaves open what it is built for',
        ),
    ],
)
def test_a_torch_of_conda_is_never_more_than_assumed(pins: list[PinnedPackage], build: str | None, word: str) -> None:
    resolved = found(stated("2.5.1", *pins, index=f"{CONDA}pytorch"))
    assert (resolved.build, resolved.is_assumed) == (build, build is not None or bool(resolved.variant))
    assert word in resolved.note


@pytest.mark.parametrize(
    ("version", "nearest"),
    [
        ("2.6.0+cu128", ("torch-2.6.0+cu126", "torch-2.6.0+cu124", "torch-2.6.0+cu124~triton-3.3.0")),
        ("2.6.0+cpu", ("torch-2.6.0+cu124", "torch-2.6.0+cu126", "torch-2.6.0+cu124~triton-3.3.0")),
        ("2.6.0a0+git1", ()),
        ("2.5.0a0+e000cf0ad9.nv24.10", ()),
        ("2.6.0+cu124.post1", ()),
        ("2.6.0+rocm6.2.4", ()),
        ("2.6.0+xpu", ()),
        ("2.7.0.dev20250101+cu124", ()),
        ("2.5.0+cu121", ("torch-2.5.1+cu118", "torch-2.5.1+cu124", "torch-2.6.0+cu124")),
        ("2.9.0", ("torch-2.7.1+cu126~py312", "torch-2.6.0+cu124", "torch-2.6.0+cu126")),
    ],
)
def test_the_nearest_are_of_the_same_backend_and_release_first(version: str, nearest: tuple[str, ...]) -> None:
    assert found(stated(version)).nearest == nearest


def test_what_is_asked_for_is_told_in_a_few_words() -> None:
    environment = stated("2.6.0", PinnedPackage("triton", "3.2.0"), python="3.12", index=PYPI)
    assert found(environment).description == "torch 2.6.0 from PyPI, Triton 3.2.0, Python 3.12"
    assert found(stated("2.6.0+cu126", index=f"{WHL}/cu126")).description == (
        "torch 2.6.0 (CUDA 12.6) from download.pytorch.org, Python 3.11"
    )
    assert found(StatedEnvironment("uv.lock", ())).description == "no torch (uv.lock)"


def test_other_packages_come_by_name_without_a_version_where_it_is_open() -> None:
    pins = [
        PinnedPackage("torchao", "0.7.0"),
        PinnedPackage("torch-xla", "2.6.0"),
        PinnedPackage("numpy", "1.26.4"),
        PinnedPackage("numpy", "2.2.4"),
        PinnedPackage("fla"),
    ]
    assert found(stated("2.6.0", PinnedPackage("triton", "3.2.0"), *pins)).packages == {
        "fla": "",
        "numpy": "",
        "torch-xla": "2.6.0",
        "torchao": "0.7.0",
    }


@pytest.mark.parametrize(
    ("text", "build", "assumed", "word"),
    [
        ("torch-2.6.0+cu124", "torch-2.6.0+cu124", False, ""),
        ("torch-2.6.0 cu124", "torch-2.6.0+cu124", False, ""),
        ("torch-2.6.0+cu124~py312", "torch-2.6.0+cu124~py312", False, ""),
        ("torch-2.6.0+cu124~triton-3.3.0", "torch-2.6.0+cu124~triton-3.3.0", False, ""),
        ("torch-2.6.0", "torch-2.6.0+cu124", True, "names no CUDA variant; taken as that of the default index"),
        ("2.6.0", "torch-2.6.0+cu124", True, "Python is not stated: it may be 3.11, 3.12 or 3.13"),
        ("torch==2.6.0+cu124", "torch-2.6.0+cu124", False, "Python is not stated"),
        ("2.6.0+cu124~py312", "torch-2.6.0+cu124~py312", False, ""),
        ("torch-2.6.0+cu124~py313", "torch-2.6.0+cu124~py313", False, ""),
        ("torch-2.6.0+cu124~py39", None, False, "for Python 3.11, 3.12 and 3.13, not for Python 3.9"),
        ("torch-2.6.0+cu124~triton-3.3.1", None, False, "with Triton 3.3.1"),
        ("torch-2.6.0+cpu", None, False, "torch 2.6.0 (CPU) is not in the catalogue"),
        ("torch-2.14.0+cu130", None, False, "no evidence of it"),
        ("torch-2.60.0", None, False, "No such build"),
    ],
)
def test_the_name_of_a_build_is_its_build_or_none(text: str, build: str | None, word: str, *, assumed: bool) -> None:
    resolved = resolve_build(text, NAMES, TESTED, WHEELS)
    assert (resolved.build, resolved.is_assumed) == (build, assumed)
    assert word in resolved.note
    assert bool(resolved.note) == bool(word)


def test_a_release_that_is_only_there_in_other_variants_names_them() -> None:
    others = {id_: BUILDS[id_] for id_ in ("torch-2.6.0+cu126", "torch-2.5.1+cu118", "torch-2.5.1+cu124")}
    others["torch-2.5.1+cu124"] = replace(others["torch-2.5.1+cu124"], origin="cu124")
    names = BuildNames(others)
    several, one = resolve_build("2.5.1", names, others, WHEELS), resolve_build("2.6.0", names, others, WHEELS)
    assert several.build is None
    assert several.note.endswith("the default index's: torch 2.5.1 (CUDA 11.8), torch 2.5.1 (CUDA 12.4)")
    assert (one.build, one.is_assumed) == ("torch-2.6.0+cu126", True)
    assert '"2.6.0" names no CUDA variant; taken as the only one in the catalogue, 2.6.0 (CUDA 12.6)' in one.note


def test_a_python_beside_a_name_narrows_it_or_contradicts_it() -> None:
    assert resolve_build("2.6.0+cu124", NAMES, TESTED, WHEELS, python="3.12").build == "torch-2.6.0+cu124~py312"
    assert resolve_build("torch-2.6.0+cu124", NAMES, TESTED, WHEELS, python="3.11").build == "torch-2.6.0+cu124"
    with pytest.raises(OtherPython, match=r"is for Python 3.11, and Python 3.12 was stated.*torch-2.6.0\+cu124~py312"):
        resolve_build("torch-2.6.0+cu124", NAMES, TESTED, WHEELS, python="3.12")


def test_what_is_no_name_of_a_build_is_refused() -> None:
    with pytest.raises(UnknownBuild, match='"newest" names no build'):
        resolve_build("newest", NAMES, TESTED, WHEELS)


def test_nothing_is_near_where_nothing_is_tested() -> None:
    resolved = resolve(stated("2.6.0+cu124"), NAMES, (), WHEELS)
    assert resolved.build is None
    assert resolved.nearest == ()


@pytest.mark.parametrize(
    ("index", "variant"),
    [
        (f"{WHL}/cu126", "cu126"),
        (f"{WHL}/nightly/cu130/", "cu130"),
        (f"{WHL}/rocm6.3", "rocm6.3"),
        (f"{WHL}/cpu?token=cu118", "cpu"),
        (WHL, ""),
        (PYPI, ""),
        ("https://cu126.example/simple", ""),
        ("wheels/cu126", "cu126"),
    ],
)
def test_an_index_of_one_variant_says_which(index: str, variant: str) -> None:
    assert variant_of(index) == variant


_words = st.sampled_from(["2.6.0", "2.6.0+cu124", "2.6.0+cpu", "2.7.1", "", "x", "2.6.0rc1", "9" * 30])
_pins = st.builds(
    PinnedPackage,
    name=st.sampled_from(["torch", "triton", "nvidia-cuda-runtime-cu12", "pytorch-cuda", "cpuonly", "numpy"]),
    version=_words | st.text(max_size=8),
    origin=st.sampled_from(["", "git+https://x.example/y", "./x", "https://x.example/t.whl", "http://[", "\0"]),
    index=st.sampled_from(["", PYPI, WHL, f"{WHL}/cu126", "conda:x", "http://[::", "cu124"]),
)


@given(st.lists(_pins, max_size=5), st.sampled_from(["", "3.12", "x", "3." + "9" * 30]))
def test_every_environment_is_a_tested_build_with_its_torch_or_none_with_a_reason(
    pins: list[PinnedPackage], python: str
) -> None:
    resolved = found(StatedEnvironment("pip freeze", tuple(pins), python))
    if resolved.build is None:
        assert resolved.note
        assert set(resolved.nearest) <= TESTED
        return
    assert BUILDS[resolved.build].build_id.apart_from_python in {
        BUILDS[id_].build_id.apart_from_python for id_ in TESTED
    }
    torches = [pin.version for pin in pins if pin.name == "torch" and pin.version]
    release = BUILDS[resolved.build].build_id.release
    assert all(version.partition("+")[0] == release for version in torches)
    assert BUILDS[resolved.build].python in resolved.pythons
    assert python in {"", BUILDS[resolved.build].python}
    assert bool(resolved.note) == (resolved.is_assumed or not python)
