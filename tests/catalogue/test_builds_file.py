"""The columns that are shipped: what a reader of `repros/builds.toml` relies on beyond the form of a single table."""

import gzip
import json
import tomllib
from datetime import timedelta

from packaging.version import Version

from knowngood.catalogue.loader import read_builds, read_catalogue, shipped_catalogue
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build, parse_build_id
from knowngood.domain.issue import environment_request
from knowngood.domain.verdicts.history import is_release

FILE = shipped_catalogue() / "builds.toml"
BUILDS = read_builds(FILE)
RELEASES = [build for build in BUILDS if is_release(build) and build.python == DEFAULT_PYTHON]


def _minor(build: Build) -> tuple[int, int]:
    version = Version(build.requirement)
    return version.major, version.minor


def test_releases_stand_in_the_file_from_oldest_to_newest() -> None:
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["build"]
    lines = [table for table in tables if table["origin"] == "default" and not {"with_triton", "python"} & set(table)]
    written = [table["torch"] for table in lines]

    assert written == sorted(written, key=Version) == [build.requirement for build in RELEASES]


def test_every_id_reads_back_as_itself() -> None:
    assert [str(parse_build_id(build.id)) for build in BUILDS] == [build.id for build in BUILDS]


def test_packages_are_those_of_the_release_and_not_of_the_next_one() -> None:
    for build in RELEASES:
        assert build.released is not None
        assert build.as_of - build.released >= timedelta(days=14)
        later = [other.released for other in RELEASES if _minor(other) > _minor(build) and other.released]
        assert all(build.as_of < released for released in later)


def test_every_minor_release_from_2_1_has_a_column() -> None:
    minors = {_minor(build) for build in RELEASES}

    assert minors == {(2, minor) for minor in range(1, max(minors)[1] + 1)}


def test_the_small_set_is_small_and_of_plain_releases() -> None:
    small = [build for build in BUILDS if build.default]

    assert 2 <= len(small) <= 3
    assert all(build in RELEASES for build in small)


def test_mismatches_differ_from_a_column_in_triton_alone() -> None:
    mismatches = [build for build in BUILDS if build.is_mismatched]

    assert len(mismatches) >= 3
    for build in mismatches:
        plain = next(other for other in RELEASES if other.torch == build.torch)
        assert (build.pinned_triton, build.cuda, build.origin) == (plain.triton, plain.cuda, plain.origin)


def test_other_pythons_are_those_on_which_torch_comes_with_its_triton() -> None:
    """By the wheels' own word: torch before 2.4 asks for Triton below Python 3.12 only, before 2.6 below 3.13; none
    before 2.9 has a wheel for 3.14, and 2.15 none for 3.10.
    """
    since = {"3.10": (2, 1), "3.12": (2, 4), "3.13": (2, 6), "3.14": (2, 9)}
    plain = {build.build_id: build for build in BUILDS if build.python == DEFAULT_PYTHON}
    others = [build for build in BUILDS if build.python != DEFAULT_PYTHON]

    assert {build.python for build in others} == set(since)
    assert len([build for build in others if build.triton is None]) >= 3
    for build in others:
        assert plain[build.build_id.apart_from_python].origin == build.origin == "default"
        assert (build.triton is not None) == (_minor(build) >= since[build.python])
        assert not build.default
    assert not [build.id for build in others if build.python == "3.10" and _minor(build) >= (2, 15)]


def test_revisions_are_those_that_shipped_evidence_read() -> None:
    found: dict[str, set[str]] = {}
    for bundle in (shipped_catalogue() / "evidence").glob("*.jsonl.gz"):
        with gzip.open(bundle, "rt", encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                if line["kind"] == "environment":
                    found.setdefault(line["imported"]["torch"], set()).add(line["imported"]["git"])
    written = {build.torch: {build.git} for build in BUILDS if build.git}

    assert len(written) >= 14
    assert {torch: found.get(torch) for torch in written} == written


def test_the_rows_of_torch_xla_ask_for_the_release_that_goes_with_the_build() -> None:
    rows = [one for one in read_catalogue([FILE.parent]).issues if one.requires.package == "torch-xla"]
    going = {build: one.release for build in BUILDS for one in build.companions if one.release}

    assert len(rows) >= 3
    assert {build.minor for build in going} == {f"2.{minor}" for minor in range(1, 10)}
    for row in rows:
        pins = {build: environment_request(row, build).pins["torch_xla"] for build in going}
        assert pins == going, row.id
