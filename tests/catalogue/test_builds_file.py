"""The columns that are shipped: what a reader of `repros/builds.toml` relies on beyond the form of a single table."""

import tomllib
from datetime import timedelta

from packaging.version import Version

from app.catalogue.read import read_builds, shipped_catalogue
from app.domain.build import Build, parse_build_id

FILE = shipped_catalogue() / "builds.toml"
BUILDS = read_builds(FILE)
RELEASES = [build for build in BUILDS if build.origin == "default" and not build.is_mismatched]


def _minor(build: Build) -> tuple[int, int]:
    version = Version(build.requirement)
    return version.major, version.minor


def test_releases_stand_in_the_file_from_oldest_to_newest() -> None:
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["build"]
    written = [table["torch"] for table in tables if table["origin"] == "default" and "with_triton" not in table]

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
