"""A stored lock as hashed requirements."""

import pytest

from knowngood.matrix.evidence.reproduce import hashed_requirements

A, B = "a" * 64, "b" * 64


def test_each_package_is_pinned_by_version_and_by_every_hash() -> None:
    lock = (
        f'[[packages]]\nname = "numpy"\nversion = "2.1"\nwheels = [{{ hashes = {{ sha256 = "{A}" }} }}]\n'
        f'[[packages]]\nname = "torch"\nversion = "2.6.0+cu126"\n'
        f'wheels = [{{ hashes = {{ sha256 = "{A}" }} }}, {{ hashes = {{ sha256 = "{B}" }} }}]\n'
    )
    assert hashed_requirements(lock) == (
        f"numpy===2.1 --hash=sha256:{A}\ntorch===2.6.0+cu126 --hash=sha256:{A} --hash=sha256:{B}\n"
    )


def test_an_archive_keeps_its_address() -> None:
    archive = f'archive = {{ url = "https://example.org/x.whl", hashes = {{ sha256 = "{A}" }} }}'
    assert hashed_requirements(f'[[packages]]\nname = "x"\n{archive}\n') == (
        f"x @ https://example.org/x.whl --hash=sha256:{A}\n"
    )


@pytest.mark.parametrize(
    "lock",
    [
        pytest.param("", id="no lock"),
        pytest.param("numpy==2.1\ntorch==2.6", id="a list of what was found"),
        pytest.param('[[packages]]\nname = "x"\nversion = "1"\n', id="no wheel"),
        pytest.param('[[packages]]\nname = "x"\nversion = "1"\nwheels = [{ url = "x.whl" }]\n', id="no hash"),
    ],
)
def test_what_cannot_be_installed_by_hash_is_not_offered(lock: str) -> None:
    assert hashed_requirements(lock) == ""
