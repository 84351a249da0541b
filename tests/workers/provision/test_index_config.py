"""pip's settings become uv's; nothing that people read holds an address."""

from pathlib import Path

import pytest

from knowngood_workers.provision.index_config import Index, bridge, parse_pip_config, read_index

LISTED = """\
:env:.disable-pip-version-check='1'
:env:.find-links='/from/environment'
global.cert='/etc/ssl/own.pem'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.find-links='/from/file'
global.index-url='https://global.example/simple'
install.index-url='https://install.example/simple'
list.format='columns'
"""


def test_the_environment_outranks_install_which_outranks_global() -> None:
    assert parse_pip_config(LISTED) == {
        "disable-pip-version-check": "1",
        "find-links": "/from/environment",
        "cert": "/etc/ssl/own.pem",
        "extra-index-url": "https://one.example/simple\nhttps://two.example/simple",
        "index-url": "https://install.example/simple",
    }


@pytest.mark.parametrize(
    "text",
    ["", "no equals sign", "WARNING: pip is being invoked by an old script wrapper", "[global]\nindex-url = x"],
)
def test_what_is_no_setting_is_passed_over(text: str) -> None:
    assert parse_pip_config(text) == {}


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


def test_a_configuration_file_is_read_by_pip_itself(tmp_path: Path) -> None:
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
