"""pip's settings become uv's; nothing that people read holds an address."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from knowngood_workers.provision.index_config import Index, bridge, read_index, read_pip_settings

FILE = """\
[global]
cert = /etc/ssl/own.pem
extra-index-url =
    https://one.example/simple
    https://two.example/simple
find-links = /from/file
Index_URL = https://global.example/simple
[install]
index-url = https://install.example/simple
[list]
format = columns
"""


def settings(tmp_path: Path, files: Mapping[str, str], **variables: str) -> dict[str, str]:
    """pip's settings of a home with these files, beside those of this machine."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "etc"), "PATH": str(tmp_path), **variables}
    return read_pip_settings(environ)


def test_the_environment_outranks_install_which_outranks_global(tmp_path: Path) -> None:
    variables = {"PIP_FIND_LINKS": "/from/environment", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    found = settings(tmp_path, {".config/pip/pip.conf": FILE}, **variables)
    assert found == found | {
        "disable-pip-version-check": "1",
        "find-links": "/from/environment",
        "cert": "/etc/ssl/own.pem",
        "extra-index-url": "\nhttps://one.example/simple\nhttps://two.example/simple",
        "index-url": "https://install.example/simple",
    }
    assert "format" not in found


@pytest.mark.parametrize("text", ["", "no equals sign", "[global]\nindex-url\n", "[global]\na = 1\na = 2\n", "\x00["])
def test_a_file_that_is_no_configuration_is_passed_over(tmp_path: Path, text: str) -> None:
    good = {".pip/pip.conf": "[global]\nours = https://mirror.example/simple\n"}
    found = settings(tmp_path, {**good, ".config/pip/pip.conf": text})
    assert found["ours"] == "https://mirror.example/simple"


RANKS = ("etc/pip/pip.conf", ".pip/pip.conf", ".config/pip/pip.conf")


@pytest.mark.parametrize("n", range(1, 4))
def test_of_several_files_the_later_one_counts(tmp_path: Path, n: int) -> None:
    found = settings(tmp_path, {name: f"[global]\nours = {name}\n" for name in RANKS[:n]})
    assert found["ours"] == RANKS[n - 1]


def test_a_file_that_is_named_outranks_all_and_leaves_out_those_of_the_user(tmp_path: Path) -> None:
    files = {name: f"[global]\nours = {name}\nother = {name}\n" for name in RANKS}
    named = {**files, "own.conf": "[global]\nours = own\n"}
    found = settings(tmp_path, named, PIP_CONFIG_FILE=str(tmp_path / "own.conf"))
    assert (found["ours"], found["other"]) == ("own", "etc/pip/pip.conf")
    assert "ours" not in settings(tmp_path, files, PIP_CONFIG_FILE=os.devnull)


def told(index: Index) -> dict[str, str]:
    return {name: value for name, value in index.variables.items() if name.startswith(("UV_", "SSL_", "ALL_"))}


ROWS = {
    "nothing configured": ({}, {}, {}, ("default index",)),
    "an index": (
        {"index-url": "https://mirror.example/simple"},
        {},
        {"UV_DEFAULT_INDEX": "https://mirror.example/simple"},
        ("default index",),
    ),
    "an index the user told uv already": (
        {"index-url": "https://mirror.example/simple"},
        {"UV_DEFAULT_INDEX": "https://uv.example/simple"},
        {"UV_DEFAULT_INDEX": "https://uv.example/simple"},
        ("default index",),
    ),
    "an index told under uv's older name": (
        {"index-url": "https://mirror.example/simple"},
        {"UV_INDEX_URL": "https://uv.example/simple"},
        {"UV_INDEX_URL": "https://uv.example/simple"},
        ("default index",),
    ),
    "two extra indexes, by pip's rule of choice": (
        {"extra-index-url": "https://one.example/simple https://two.example/simple"},
        {},
        {
            "UV_INDEX": "https://one.example/simple https://two.example/simple",
            "UV_INDEX_STRATEGY": "unsafe-best-match",
        },
        ("default index", "extra index 1", "extra index 2", "best match over all indexes"),
    ),
    "an extra index and a strategy of the user's": (
        {"extra-index-url": "https://one.example/simple"},
        {"UV_INDEX_STRATEGY": "first-index"},
        {"UV_INDEX": "https://one.example/simple", "UV_INDEX_STRATEGY": "first-index"},
        ("default index", "extra index 1"),
    ),
    "local places that are not there": (
        {"index-url": "file:///not/there", "extra-index-url": "file:///nor/this", "find-links": "/gone file:///gone"},
        {},
        {},
        ("default index",),
    ),
    "find-links switched off for uv": (
        {"find-links": "{here}"},
        {"UV_FIND_LINKS": ""},
        {"UV_FIND_LINKS": ""},
        ("default index",),
    ),
    "find-links, a folder and a page": (
        {"find-links": "{here}\nhttps://pages.example/wheels.html"},
        {},
        {"UV_FIND_LINKS": "{here},https://pages.example/wheels.html"},
        ("default index", "find-links"),
    ),
    "no index at all": ({"no-index": "true", "find-links": "{here}"}, {}, {"UV_FIND_LINKS": "{here}"}, ("find-links",)),
    "certificate, trusted host and proxy": (
        {"cert": "{here}/own.pem", "trusted-host": "a.example\nb.example", "proxy": "http://proxy.example:3128"},
        {},
        {
            "SSL_CERT_FILE": "{here}/own.pem",
            "UV_INSECURE_HOST": "a.example b.example",
            "ALL_PROXY": "http://proxy.example:3128",
        },
        ("default index",),
    ),
    "uv settings that would change the resolution": (
        {},
        {"UV_TORCH_BACKEND": "auto", "UV_PRERELEASE": "allow", "UV_EXCLUDE_NEWER": "2024-01-01", "UV_OVERRIDE": "x"},
        {},
        ("default index",),
    ),
}


@pytest.mark.parametrize(("pip", "environ", "expected", "sources"), ROWS.values(), ids=ROWS.keys())
def test_pips_settings_become_uvs(
    tmp_path: Path, pip: dict[str, str], environ: dict[str, str], expected: dict[str, str], sources: tuple[str, ...]
) -> None:
    (tmp_path / "own.pem").touch()
    index = bridge({key: value.replace("{here}", str(tmp_path)) for key, value in pip.items()}, environ)
    assert told(index) == {key: value.replace("{here}", str(tmp_path)) for key, value in expected.items()}
    assert index.sources == sources
    assert index.no_index == ("no-index" in pip)


def test_a_virtual_environment_around_us_is_not_uvs_business() -> None:
    variables = bridge({}, {"VIRTUAL_ENV": "/ours", "PYTHONPATH": "/ours", "PATH": "/bin"}).variables
    assert variables == {"PATH": "/bin"}


def test_a_configuration_file_reaches_uv(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nextra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n")
    environ = {"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    variables = read_index(environ).variables
    assert variables["UV_INDEX"] == "https://one.example/simple https://two.example/simple"


ADDRESSED = {
    "an index": ("Failed to fetch: `https://mirror.example/simple/torch/`", "Failed to fetch: `<index>/torch`"),
    "credentials": ("url (http://me:secret@10.0.0.7:8080/simple/torch/)", "url (<index>/torch)"),
    "a bare host of ours": ("certificate is not valid for mirror.example", "certificate is not valid for <index>"),
    "a file": ("file:///srv/wheels/torch-2.6.0.whl", "<index>/torch-2.6.0.whl"),
    "a broken address": ("http://[::1/simple/torch/", "<index>"),
    "no address": ("there is no version of torch==2.6.9", "there is no version of torch==2.6.9"),
}


@pytest.mark.parametrize(("text", "expected"), ADDRESSED.values(), ids=ADDRESSED.keys())
def test_addresses_are_hidden_from_what_people_read(text: str, expected: str) -> None:
    assert bridge({"index-url": "https://me:secret@mirror.example/simple"}, {}).hide(text) == expected
