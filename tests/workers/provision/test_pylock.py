"""The stored lock: composed, read back, compared with the build."""

import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import EnvironmentRequest
from knowngood_workers.provision.resolver import (
    backend_of,
    compose_lock,
    environment_key,
    print_pins,
    read_lock,
    requirements_of,
    wrong_build,
)

HEAD = 'lock-version = "1.0"\ncreated-by = "uv"\nrequires-python = ">=3.11"\n'
BUILD = Build(
    "torch-2.6.0+cu124", "2.6.0+cu124", "2.6.0", "12.4", "3.2.0", "3.2.0", "3.11", "default", date(2025, 2, 28)
)
BACKEND = replace(BUILD, id="torch-2.6.0+cu126", torch="2.6.0+cu126", cuda="12.6", origin="cu126")


def package(
    name: str, version: str, *, sha: str = "ab" * 32, host: str = "https://files.example", size: int = 7
) -> str:
    file = f"{name}-{version}-py3-none-any.whl"
    wheel = f'{{ url = "{host}/{file}", size = {size}, hashes = {{ sha256 = "{sha}" }} }}'
    return f'\n[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{wheel}]\n'


def lock_of(*packages: str) -> str:
    return HEAD + "".join(packages)


def test_two_resolutions_become_one_standard_lock() -> None:
    main = lock_of(package("torch", "2.6.0"), package("shared", "1.0", sha="cd" * 32))
    bare = lock_of(package("shared", "2.0", sha="ef" * 32))
    text = compose_lock(main, bare, comment="torch-2.6.0\nfrom: default index")
    lock = read_lock(text)
    assert [(wheel.name, wheel.version) for wheel in lock.wheels] == [("torch", "2.6.0"), ("shared", "2.0")]
    assert text.startswith("# torch-2.6.0\n# from: default index\nlock-version")
    Pylock.from_dict(read_toml(text)).validate()


def read_toml(text: str) -> dict[str, object]:
    return tomllib.loads(text)


def test_credentials_never_reach_a_stored_lock() -> None:
    text = compose_lock(lock_of(package("torch", "2.6.0", host="https://me:secret@mirror.example")), "", comment="")
    assert "secret" not in text
    assert read_lock(text).wheels[0].url.startswith("https://mirror.example/")


def test_a_lock_is_installed_by_hash_and_exact_version() -> None:
    lock = read_lock(lock_of(package("Torch_XLA", "2.5.1")))
    assert print_pins(lock) == f"torch-xla===2.5.1 --hash=sha256:{'ab' * 32}\n"


def test_equal_wheels_have_equal_keys_whatever_their_address() -> None:
    one, other = (read_lock(lock_of(package("a", "1", host=host))).wheels[0] for host in ("https://x", "file:///y"))
    assert one.key == other.key


def test_a_source_archive_cannot_be_locked() -> None:
    source = 'sdist = { url = "https://x/a.tar.gz", hashes = { sha256 = "00" } }'
    sdist = f'\n[[packages]]\nname = "a"\nversion = "1"\n{source}\n'
    with pytest.raises(ValueError, match="a has no wheel"):
        read_lock(lock_of(sdist))


WRONG = {
    "the default index's wheel shows no local part": (BUILD, ("2.6.0", "3.2.0"), None),
    "its own local part": (BUILD, ("2.6.0+cu124", "3.2.0"), None),
    "a local CPU wheel": (
        BUILD,
        ("2.6.0+cpu", "3.2.0"),
        "torch 2.6.0+cpu was resolved where 2.6.0+cu124 was asked for",
    ),
    "another CUDA": (
        BACKEND,
        ("2.6.0+cu118", "3.2.0"),
        "torch 2.6.0+cu118 was resolved where 2.6.0+cu126 was asked for",
    ),
    "another release": (BUILD, ("2.6.1", "3.2.0"), "torch 2.6.1 was resolved where 2.6.0+cu124 was asked for"),
    "another Triton": (BUILD, ("2.6.0", "3.3.0"), "triton 3.3.0 was resolved where 3.2.0 was asked for"),
}


@pytest.mark.parametrize(("build", "versions", "expected"), WRONG.values(), ids=WRONG.keys())
def test_what_was_resolved_must_be_the_build(build: Build, versions: tuple[str, str], expected: str | None) -> None:
    lock = read_lock(lock_of(package("torch", versions[0]), package("triton", versions[1], sha="cd" * 32)))
    assert wrong_build(lock, build) == expected


def test_a_lock_without_torch_is_no_build() -> None:
    assert wrong_build(read_lock(lock_of(package("triton", "3.2.0"))), BUILD) == "the resolution holds no torch"


def request_of(*requirements: str) -> EnvironmentRequest:
    return EnvironmentRequest(build=BUILD.id, requirements=requirements, no_deps=(), mutates=False)


def test_torch_is_asked_for_so_that_no_local_version_stands_in() -> None:
    assert requirements_of(BUILD, request_of("einops"))[0] == "torch===2.6.0"
    assert requirements_of(BACKEND, request_of())[0] == "torch===2.6.0+cu126"


def test_an_issue_may_choose_its_own_numpy() -> None:
    assert requirements_of(BUILD, request_of("numpy<2")) == ("torch===2.6.0", "setuptools", "numpy<2")


def test_a_backends_index_is_named_unless_its_wheel_lies_here(tmp_path: Path) -> None:
    assert backend_of(BUILD, ()) == ()
    assert backend_of(BACKEND, (tmp_path,)) == ("--torch-backend", "cu126")
    (tmp_path / "torch-2.6.0+cu118-cp311-cp311-linux_x86_64.whl").touch()
    (tmp_path / "torch-2.6.0+cu126-cp312-cp312-linux_x86_64.whl").touch()
    (tmp_path / "torch-not-a-wheel.whl").touch()
    assert backend_of(BACKEND, (tmp_path,)) == ("--torch-backend", "cu126")
    (tmp_path / "torch-2.6.0+cu126-cp311-cp311-linux_x86_64.whl").touch()
    assert backend_of(BACKEND, (tmp_path,)) == ()


@pytest.mark.parametrize(
    "changed",
    [{"as_of": date(2025, 3, 1)}, {"origin": "cu126"}, {"triton": "3.3.0"}, {"python": "3.12"}],
    ids=["its date", "its origin", "its Triton", "its Python"],
)
def test_whatever_decides_what_is_installed_makes_another_environment(changed: dict[str, object]) -> None:
    other = replace(BUILD, **changed)  # type: ignore[arg-type]  # a bag of changed fields
    assert environment_key(other, request_of()) != environment_key(BUILD, request_of())
