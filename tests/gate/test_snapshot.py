"""Snapshots: what goes in comes out, and what is not right is refused with a sentence."""

import base64
import gzip
import hashlib
import json
import resource
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from knowngood.domain.errors import BadSnapshot
from knowngood.domain.issue import Claim, Device, Packages, Requires, Severity
from knowngood.domain.issue_selectors import Watch, WatchList, WatchListContent
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_flaky,
)
from knowngood.gate.request import GateRequest, rule
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.knowledge.signed_snapshot import make_key, public_key, read_snapshot, write_snapshot
from knowngood.store.knowledge.snapshot import FORMAT, PRODUCT, VERSION, Snapshot, read_unsigned
from tests.gate.given_gate import make_known, row
from tests.make import HARDWARE, NOON, make_build, make_issue

KEY = make_key()
FILES = Path(__file__).parent / "files"
LIST = WatchList(
    "vision", "lead", 2, NOON, "lead", WatchListContent(Watch(issues=("toy-1",), severity=Severity.HIGH), (), "x")
)


def knowledge() -> Knowledge:
    issues = (
        make_issue(
            workarounds=("eager", "clone"), claims=(Claim("Fixed.", "upstream", date(2026, 1, 2)),), is_smoke=True
        ),
        make_issue(
            "gpu-1",
            requires=Requires(Device.CUDA, ">=2.1", ">=3.9", (9, 0), "torch-xla"),
            packages=Packages(("torch_xla=={torch}",), {"2.5": ("torch_xla==2.5.0",)}, ("torch_xla",)),
        ),
    )
    known = make_known([*row("xo~!", cures={"eager": "e", "clone": "i"}), *row("?0- ", "gpu-1")], *issues)
    finding = WorkaroundFinding(
        WorkaroundVerdict.PARTIAL, quoted("x"), applies=False, helped=("a",), failed=("b",), runs=2
    )
    cell = replace(
        next(iter(known.cells.values())),
        variants=(VariantFinding("big", Verdict.FLAKY, quoted("1 of 2"), 1, 2),),
        workarounds={"eager": finding},
        reported="big",
    )
    cells = {**known.cells, (cell.issue, cell.build, cell.hardware): cell}
    cpu = make_build("2.9.0+cpu", pinned_triton=None, released=None, as_of=date(2026, 1, 2))
    builds = {**known.builds, cpu.id: cpu}
    return Knowledge(replace(known, cells=cells, builds=builds), frozenset(b for _, b, _ in cells), {"vision": LIST})


def needed(known: Known) -> Known:
    """Less the scripts of issues, which no answer needs; which cells are flaky is looked up when it is written."""
    issues = {id_: replace(issue, script="") for id_, issue in known.issues.items()}
    flaky = frozenset(place for place, cell in known.cells.items() if is_flaky(cell))
    return replace(known, issues=issues, cells=dict(known.cells), flaky=flaky)


def test_what_goes_in_comes_out() -> None:
    made = knowledge()
    read = read_snapshot(write_snapshot(made, KEY), [public_key(KEY)])
    assert needed(read.knowledge.known) == needed(made.known)
    assert (read.knowledge.tested, read.knowledge.lists) == (made.tested, made.lists)
    assert (read.key, read.is_trusted) == (public_key(KEY), True)


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_of_each_version_that_is_read_says_the_same(version: int) -> None:
    """Before 3 reasons were sentences."""
    read = read_unsigned((FILES / f"version-{version}.snapshot").read_bytes()).knowledge
    assert (needed(read.known), read.tested, read.lists) == (
        needed(knowledge().known),
        knowledge().tested,
        knowledge().lists,
    )


def test_the_same_grounds_and_key_give_the_same_bytes() -> None:
    assert write_snapshot(knowledge(), KEY) == write_snapshot(knowledge(), KEY)


def test_a_decision_from_it_is_the_one_that_was_made_with_what_went_in() -> None:
    made = knowledge()
    read = read_snapshot(write_snapshot(made, KEY)).knowledge
    for build in made.known.builds:
        asked = GateRequest(build=build, issues=("toy-1", "gpu-1"))
        assert rule(asked, read, NOON) == rule(asked, made, NOON)


LISTED = "# read from the public index on 2026-01-01\ntorch\t2.6.0\t2025-01-29\t\t\t{tag}-manylinux_2_28_x86_64\t\n"


@pytest.mark.parametrize(("tag", "blocks"), [("cp311-cp311", False), ("cp314-cp314", True)])
def test_the_wheels_that_a_snapshot_lists_decide_whatever_this_release_lists(tag: str, blocks: bool) -> None:
    made = knowledge()
    listing = replace(made, known=replace(made.known, listed=LISTED.format(tag=tag)))
    read = read_snapshot(write_snapshot(listing, KEY)).knowledge
    ruling = rule(GateRequest(build="torch-2.6.0+cu124", python="3.11", issues=("toy-1",)), read, NOON)
    assert [refusal.code for refusal in ruling.refusals] == (["no_wheel"] if blocks else [])


def test_wheels_of_a_snapshot_that_cannot_be_read_are_refused_in_a_sentence() -> None:
    made = knowledge()
    listing = replace(made, known=replace(made.known, listed="# read on 2026-01-01\ntorch\tnone\n"))
    read = read_snapshot(write_snapshot(listing, KEY)).knowledge
    with pytest.raises(BadSnapshot, match="lists wheels as this release cannot read them"):
        rule(GateRequest(build="torch-2.6.0+cu124", issues=("toy-1",)), read, NOON)


def test_nobody_who_names_no_key_is_told_that_it_was_checked() -> None:
    read = read_snapshot(write_snapshot(knowledge(), KEY))
    assert isinstance(read, Snapshot)
    assert not read.is_trusted


def header_of(data: bytes, **changes: object) -> bytes:
    line, _, rest = data.partition(b"\n")
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n" + rest


def flipped(data: bytes) -> bytes:
    place = len(data) - 100
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def unsigned(data: bytes) -> bytes:
    line, _, rest = data.partition(b"\n")
    return line + b"\n\n" + rest.partition(b"\n")[2]


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a bit is flipped": (flipped, "damaged"),
    "it is cut off": (lambda data: data[: len(data) // 2], "damaged"),
    "it is empty": (lambda _: b"", "no Known Good snapshot"),
    "it is another gzip file": (lambda _: gzip.compress(b"{}"), "no Known Good snapshot"),
    "it is of another format": (lambda data: header_of(data, format="other"), "no Known Good snapshot"),
    "it is of another product": (lambda data: header_of(data, product="other"), 'another product ("other")'),
    "it is newer": (lambda data: header_of(data, version=4, needs="9.9"), "Known Good 9.9 or newer reads it"),
    "its format is none": (lambda data: header_of(data, version=True), "is of format True and this release reads"),
    "its format is below the first": (lambda data: header_of(data, version=-1), "is of format -1 and this release"),
    "its claims are those of older rules": (lambda data: header_of(data, version=1), "made by older rules"),
    "its date is changed": (
        lambda data: header_of(data, made_at="2030-01-01T00:00:00+00:00"),
        "changed after it was signed",
    ),
    "its key is changed": (lambda data: header_of(data, key=public_key(make_key())), "changed after it was signed"),
    "its key is none": (lambda data: header_of(data, key="ed25519:AAAA"), "no public key"),
    "it is not signed": (unsigned, "not signed"),
}


@pytest.mark.parametrize(("spoil", "words"), list(SPOILT.values()), ids=list(SPOILT))
def test_what_is_not_right_is_refused_and_says_why(spoil: Callable[[bytes], bytes], words: str) -> None:
    with pytest.raises(BadSnapshot, match=r"snapshot|key") as refused:
        read_snapshot(spoil(write_snapshot(knowledge(), KEY)))
    assert words in str(refused.value)


def signed(payload: bytes, **changes: str) -> bytes:
    """A file that somebody else signed, over whatever contents."""
    header = {"format": FORMAT, "version": VERSION, "product": PRODUCT, "made_at": NOON.isoformat()}
    digest = {"key": public_key(KEY), "sha256": hashlib.sha256(payload).hexdigest()}
    line = json.dumps({**header, **digest, **changes}).encode() + b"\n"
    private = serialization.load_pem_private_key(KEY, None)
    assert isinstance(private, Ed25519PrivateKey)
    return line + base64.b64encode(private.sign(line)) + b"\n" + payload


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: signed(gzip.compress(b"{}\n{}"), made_at="2026-11-01T00:00:00"), "made_at has no zone"),
        (lambda: signed(gzip.compress(b" " * 200_000_000)), "more than any snapshot of ours would hold"),
        (
            lambda: signed(gzip.compress(b"[" + b"[]," * 20_000_000 + b"[]]")),
            r"more than (300 MB of memory|2 s of a processor)|its reader was ended",
        ),
    ],
    ids=["its date has no zone", "it unpacks to 200 MB", "it is small and parsed large"],
)
def test_what_somebody_signed_is_refused_within_limits(data: Callable[[], bytes], words: str) -> None:
    made = data()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadSnapshot, match=words):
        read_snapshot(made)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000  # kB


def test_another_key_than_the_one_named_is_refused() -> None:
    other = public_key(make_key())
    with pytest.raises(BadSnapshot, match="none of the keys given"):
        read_snapshot(write_snapshot(knowledge(), KEY), [other])
    assert read_snapshot(write_snapshot(knowledge(), KEY), [other, public_key(KEY)]).is_trusted


def test_a_private_key_of_another_kind_is_refused() -> None:
    with pytest.raises(BadSnapshot, match="signing key"):
        public_key(b"-----BEGIN NOTHING-----")


@pytest.mark.parametrize(("days", "words"), [(31, "31 days old"), (-3, "still to come")])
def test_one_that_is_too_old_or_of_tomorrow_is_not_ruled_on(days: int, words: str) -> None:
    made = knowledge()
    with pytest.raises(BadSnapshot, match=words):
        rule(GateRequest(build=make_build().id, issues=("toy-1",)), made, NOON + timedelta(days=days), is_snapshot=True)


def test_cells_are_decoded_when_they_are_asked_for() -> None:
    read = read_snapshot(write_snapshot(knowledge(), KEY)).knowledge.known.cells
    place = ("toy-1", make_build("2.5.1+cu124").id, HARDWARE)
    assert isinstance(read[place], Cell)
    assert read[place] is read[place]
