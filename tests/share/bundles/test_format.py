import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowngood.domain.errors import BadBundle, StoreUnusable
from knowngood.domain.issue import digest
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.serialization.bounds import LOG_LIMIT_BYTES
from knowngood.serialization.lock_keys import InstalledEnvironment, without_addresses
from knowngood.share import bundle as bundles_format
from knowngood.share.bundle import (
    BundleHeader,
    Item,
    LockText,
    LogText,
    check_bundle,
    read_in_steps,
    read_items,
    write_bundle,
)
from tests.counting import peak_bytes
from tests.full_disk import no_file_larger_than
from tests.make import NOON, make_attempt
from tests.pace import cost

HEADER = BundleHeader(created_at=NOON, origin="gpu-box", catalogue={"toy-1": "f" * 32})
ITEMS: list[Item] = [
    Machine("EPYC", "avx2", 2, 8, "Debian 12", "6.1", "2.36", "g++", gpus=(Gpu(0, "H100", (9, 0), 80),)),
    LockText("a" * 32, 'lock-version = "1.0"\n'),
    InstalledEnvironment("a" * 32, {"torch": "2.6.0"}, {"torch": "2.6.0+cu124"}),
    LogText(digest("nul \x00 and ü\n"), "nul \x00 and ü\n"),
    make_attempt(Outcome.MATCH, log_digest=digest("nul \x00 and ü\n"), labels={"run": "r-1"}),
    make_attempt(Outcome.PASS, ordinal=2),
]


def packed(items: list[Item] = ITEMS, header: BundleHeader = HEADER) -> bytes:
    out = io.BytesIO()
    write_bundle(out, header, items)
    return out.getvalue()


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in gzip.decompress(data).splitlines()]


def repacked(lines: list[dict[str, Any]]) -> bytes:
    """The same lines with a last line that fits them: what an honest writer would have written."""
    import hashlib
    from collections import Counter

    # Not orjson, which writes no number of more than 64 bits.
    written = (json.dumps(line, separators=(",", ":")) for line in lines if line["kind"] != "footer")
    body = "".join(f"{line}\n" for line in written).encode()
    counts = Counter(line["kind"] for line in lines if line["kind"] not in {"header", "footer"})
    footer = {"kind": "footer", "counts": counts, "sha256": hashlib.sha256(body).hexdigest()}
    return gzip.compress(body + orjson.dumps(footer) + b"\n")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def writing(data: bytes) -> Path:
        path = tmp_path / "results.jsonl.gz"
        path.write_bytes(data)
        return path

    return writing


def test_a_bundle_gives_back_what_was_put_in(write: Any) -> None:
    checked = check_bundle(write(packed()))
    assert checked.header == HEADER
    assert checked.counts == {"machine": 1, "lock": 1, "environment": 1, "log": 1, "attempt": 2}
    assert list(read_items(checked)) == ITEMS


def test_the_same_items_give_the_same_bytes() -> None:
    assert packed() == packed()


def test_a_bundle_may_have_been_unpacked(write: Any) -> None:
    assert list(read_items(check_bundle(write(gzip.decompress(packed()))))) == ITEMS


def test_an_empty_bundle_is_a_bundle(write: Any) -> None:
    assert check_bundle(write(packed([]))).counts == {}


DATA = packed()
GZIP_HEADER_BYTES = 10  # names, times and the like: they change nothing of what is inside


@given(place=st.integers(GZIP_HEADER_BYTES, len(DATA) - 1), bit=st.integers(0, 7))
@example(place=len(DATA) - 9, bit=6)
@example(place=len(DATA) - 9, bit=0)
def test_one_flipped_bit_is_noticed(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    damaged = bytearray(DATA)
    damaged[place] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "flipped.jsonl.gz"
    path.write_bytes(damaged)
    with suppress(EOFError, OSError, zlib.error):
        if place == LAST_PACKED and gzip.decompress(bytes(damaged)) == PLAIN:
            check_bundle(path)  # the bits that fill the last byte up say nothing
            return
    with pytest.raises(BadBundle):
        check_bundle(path)


PLAIN = gzip.decompress(DATA)
LAST_PACKED = len(DATA) - 9  # before the checksum and the length


@given(place=st.integers(0, len(PLAIN) - 2), byte=st.integers(0, 255))
@example(place=PLAIN.rindex(b'"counts":{') + len(b'"counts":{'), byte=ord(" "))
def test_one_changed_byte_of_an_unpacked_bundle_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    damaged = bytearray(PLAIN)
    damaged[place] = byte
    path = tmp_path_factory.getbasetemp() / "changed.jsonl"
    path.write_bytes(damaged)
    if bytes(damaged) == PLAIN:
        check_bundle(path)
    else:
        with pytest.raises(BadBundle):
            check_bundle(path)


@pytest.mark.parametrize("data", [DATA, PLAIN], ids=["packed", "unpacked"])
def test_a_bundle_cut_off_anywhere_is_noticed(write: Any, data: bytes) -> None:
    for length in range(0, len(data), 37):
        with pytest.raises(BadBundle):
            check_bundle(write(data[:length]))


def test_a_bundle_cut_off_says_so(write: Any) -> None:
    with pytest.raises(BadBundle, match=r"results\.jsonl\.gz ends in the middle: it was cut off on its way"):
        check_bundle(write(DATA[:-30]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"format": "osv"}, "is no Known Good bundle", id="another format"),
        pytest.param({"product": "other"}, r'is a bundle of another product \("other"\)', id="another product"),
        pytest.param(
            {"version": 2, "needs": "3.1"},
            r"is of bundle format 2 and this release reads up to 1; Known Good 3\.1 or newer reads it",
            id="a newer format",
        ),
        pytest.param({"version": True}, "is of bundle format True and this release", id="a format that is none"),
        pytest.param({"version": -1}, "is of bundle format -1 and this release", id="a format below the first"),
        pytest.param({"created_at": "yesterday"}, "line 1: created_at", id="a header that is none"),
        pytest.param({"origin": "x" * 5_000_000}, "line 1: .* is no origin", id="an origin of five megabytes"),
        pytest.param({"product": "x" * 5_000_000}, "another product .{0,60}$", id="a product of five megabytes"),
    ],
)
def test_a_bundle_we_cannot_read_says_what_it_is(write: Any, change: dict[str, Any], sentence: str) -> None:
    lines = lines_of(packed())
    with pytest.raises(BadBundle, match=sentence):
        check_bundle(write(repacked([lines[0] | change, *lines[1:]])))


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"hello\n", b'{"a": 1}\n', b"[]\n", b"\x00" * 100, b"\x1f\x8b", gzip.compress(b"")],
    ids=["empty", "newline", "text", "json", "list", "zeros", "magic", "nothing packed"],
)
def test_a_file_that_is_something_else_is_refused(write: Any, data: bytes) -> None:
    with pytest.raises(BadBundle):
        check_bundle(write(data))


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadBundle, match="cannot be read: No such file"):
        check_bundle(tmp_path / "none.jsonl.gz")


def test_fields_and_kinds_of_a_later_writer_are_passed_over(write: Any) -> None:
    lines = lines_of(packed())
    later = [line | {"mood": "good"} for line in lines]
    later.insert(3, {"kind": "opinion", "text": "fine"})
    checked = check_bundle(write(repacked(later)))
    assert list(read_items(checked)) == ITEMS


GPU = {"index": 0, "name": "H100", "capability": [9, 0], "memory_bytes": 80}
RAISED = {"kind": "E", "message": "m", "text": "t"}
TROUBLE = {"code": "no_compiler", "sentence": "x" * 20_000}


def recorded(**said: Any) -> dict[str, Any]:
    return {"record": {"ending": "raised", **said}}


BAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("an outcome nobody knows", "attempt", {"record": {"ending": "exploded"}}, "record.ending"),
    ("a field that is missing", "attempt", {"issue": None}, "issue"),
    ("an issue that is a path", "attempt", {"issue": "../../etc/passwd"}, "is no name"),
    ("an arm with markup", "attempt", {"arm": "<script>"}, "is no name"),
    ("a build that does not parse", "attempt", {"build": "2.6.0"}, 'does not start with "torch-"'),
    ("a build written otherwise", "attempt", {"build": "torch-2.6.0+CU124"}, "is written"),
    ("a hardware class that is none", "attempt", {"hardware": "quantum"}, "is no hardware class"),
    ("a vector ISA that is none", "attempt", {"hardware": "cpu-x86_64-sse2"}, "is no hardware class"),
    ("a digest that is none", "attempt", {"machine": "xyz"}, "is no digest"),
    ("a binding that is none", "attempt", {"binding": ""}, "origin or binding"),
    ("an origin with a line end", "attempt", {"origin": "a\nb"}, "origin or binding"),
    ("an id that is none", "attempt", {"id": "a b"}, "is no id of ours"),
    ("a time without its zone", "attempt", {"started_at": "2026-11-21T12:00:00"}, "do not say their zone"),
    ("an end before its start", "attempt", {"finished_at": "2020-01-01T00:00:00Z"}, "finished before it started"),
    ("a start before all of UTC", "attempt", {"started_at": "0001-01-01T00:00:00+10:00"}, "before there was"),
    ("an ordinal that no column holds", "attempt", {"ordinal": 1 << 40}, "is none of ours"),
    ("an ordinal before the first", "attempt", {"ordinal": 0}, "is none of ours"),
    ("memory beyond counting", "machine", {"memory_bytes": 10**400}, "not within 0 and"),
    ("cores beyond counting", "machine", {"cores": 1 << 60}, "not within 0 and"),
    ("less than no memory", "machine", {"memory_bytes": -1}, "not within 0 and"),
    ("a processor of five megabytes", "machine", {"cpu_model": "x" * 5_000_000}, "more than 300 characters"),
    ("a thousand GPUs", "machine", {"gpus": [GPU] * 1000}, "more than 64"),
    ("a GPU with a long name", "machine", {"gpus": [GPU | {"name": "x" * 301}]}, "more than 300 characters"),
    ("a GPU of no capability", "machine", {"gpus": [GPU | {"capability": [10**30, 0]}]}, "is none"),
    ("means of isolation without end", "machine", {"sandbox": ["x" * 1000]}, "more than 300 characters"),
    ("a package with a long version", "environment", {"packages": {"torch": "1" * 301}}, "more than 300 characters"),
    ("packages without end", "environment", {"imported": dict.fromkeys(map(str, range(5001)), "1")}, "more than 5000"),
    ("labels without end", "attempt", {"labels": {"x" * 301: "1"}}, "more than 300 characters"),
    ("an exit code beyond counting", "attempt", recorded(exit_code=-(10**400)), "exit code"),
    ("a memory peak beyond counting", "attempt", recorded(peak_bytes=10**400), "not within 0 and"),
    ("threads beyond counting", "attempt", recorded(threads=1 << 60), "not within 0 and"),
    ("a log cut beyond counting", "attempt", recorded(log_cut_bytes=1 << 60), "not within 0 and"),
    ("a probe seen too often", "attempt", recorded(probes={"eager": 10**400}), "not within 0 and"),
    ("a probe with a long name", "attempt", recorded(probes={"x" * 301: 1}), "more than 300 characters"),
    (
        "a path gone too often",
        "attempt",
        recorded(seen=[{"kind": "frame", "name": "f", "ran": 1 << 60}]),
        "not within 0 and",
    ),
    (
        "a path with a long name",
        "attempt",
        recorded(seen=[{"kind": "frame", "name": "x" * 301}]),
        "more than 300 characters",
    ),
    ("seconds without end", "attempt", recorded(wall_s=1e300), "no time"),
    ("seconds below none", "attempt", recorded(wall_s=-1.0), "no time"),
    ("own seconds without end", "attempt", recorded(own_s=1e300), "no time"),
    ("a signal of a megabyte", "attempt", recorded(signal="x" * (1 << 20)), "more than 300 characters"),
    (
        "a long version of what was imported",
        "attempt",
        recorded(imported={"torch": "x" * 301}),
        "more than 300 characters",
    ),
    (
        "an observation of two megabytes",
        "attempt",
        recorded(observed={"x": "y" * (2 << 20)}),
        "longer than any of ours",
    ),
    ("a traceback of two megabytes", "attempt", recorded(raised=RAISED | {"text": "y" * (2 << 20)}), "longer than"),
    ("a class of a megabyte", "attempt", recorded(raised=RAISED | {"kind": "y" * (1 << 20)}), "the class of"),
    ("a long sentence of trouble", "attempt", recorded(trouble=TROUBLE), "the sentence of its trouble"),
    ("a log under another digest", "log", {"text": "something else"}, "is not the digest of its text"),
    ("a log without end", "log", {"text": "x" * (LOG_LIMIT_BYTES + 1)}, "is longer than any of ours"),
    ("a lock under no digest", "lock", {"digest": "1"}, "is no digest"),
    ("an environment under no digest", "environment", {"lock_digest": "1"}, "is no digest"),
]


@pytest.mark.parametrize(("kind", "change", "sentence"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_could_not_be_stored_or_shown_is_refused_with_its_line(
    write: Any, kind: str, change: dict[str, Any], sentence: str
) -> None:
    lines = lines_of(packed())
    number = next(n for n, line in enumerate(lines) if line["kind"] == kind)
    lines[number] |= change
    with pytest.raises(BadBundle, match=rf"results\.jsonl\.gz, line {number + 1}, {kind}: .*{sentence}") as caught:
        list(read_items(check_bundle(write(repacked(lines)))))
    assert len(str(caught.value)) < 600


def test_two_bundles_in_one_file_are_refused(write: Any) -> None:
    with pytest.raises(BadBundle, match="goes on after its last line"):
        check_bundle(write(DATA + DATA))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(write: Any) -> None:
    endless = write(gzip.compress(b'{"kind":"header","format":"' + b"x" * (64 << 20)))

    def refuse() -> None:
        with pytest.raises(BadBundle, match="holds more than any bundle of ours would"):
            check_bundle(endless)

    assert peak_bytes(refuse) < 40 << 20


@pytest.mark.parametrize(("limit", "items"), [("MOST_LINES", ITEMS), ("MOST_LOCKS", ITEMS[1:3])])
def test_a_bundle_of_too_many_lines_or_locks_is_refused(
    write: Any, monkeypatch: pytest.MonkeyPatch, limit: str, items: list[Item]
) -> None:
    path = write(packed(items))
    monkeypatch.setattr(bundles_format, limit, len(items))
    check_bundle(path)
    monkeypatch.setattr(bundles_format, limit, len(items) - 1)
    with pytest.raises(BadBundle, match="export it in parts"):
        check_bundle(path)


def test_what_a_bundle_says_a_second_time_takes_no_memory(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles_format, "_HELD_BYTES", 0)
    checked = check_bundle(write(packed([LogText(digest(""), "")] * 20_000)))
    assert peak_bytes(lambda: list(read_in_steps(checked, 1 << 20, lambda _: None))) < 2 << 20


def test_where_no_room_is_left_for_the_unpacked_lines_a_sentence_says_so(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles_format, "_HELD_BYTES", 0)
    text = "x" * 1_000_000
    checked = check_bundle(write(packed([LogText(digest(text), text)] * 3)))
    with no_file_larger_than(1 << 20), pytest.raises(StoreUnusable, match="no room to unpack"):
        list(read_in_steps(checked, 1 << 20, lambda _: None))


def test_a_large_bundle_is_read_and_written_without_holding_it(tmp_path: Path) -> None:
    def logs() -> Iterator[Item]:
        for n in range(300):
            text = f"{n}\n" + "x" * 200_000
            yield LogText(digest(text), text)

    path = tmp_path / "large.jsonl.gz"

    def write_and_read() -> None:
        with path.open("wb") as out:
            write_bundle(out, HEADER, logs())
        checked = check_bundle(path)
        assert sum(1 for _ in read_items(checked)) == checked.counts["log"] == 300

    assert peak_bytes(write_and_read) < 20 << 20, "60 MB of logs went through"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('url = "https://h.example/a/b/torch-2.6.0%2Bcu124.whl"', 'url = "torch-2.6.0%2Bcu124.whl"'),
        ("url = 'https://h.example/a.whl?token=x#sha256=1'", "url = 'a.whl'"),
        ('path = "../wheels/a.whl"', 'path = "../wheels/a.whl"'),
        ('path = "/srv/wheels/a.whl"', 'path = "a.whl"'),
        ('index = "https://h.example/simple"\nname = "x"', 'name = "x"'),
        ('git = { type = "git", url = "ssh://git@h.example/o/r.git" }', 'git = { type = "git", url = "r.git" }'),
        ('url = "https://h.example/simple/"', 'url = ""'),
        ('requires-python = ">=3.11"', 'requires-python = ">=3.11"'),
        ("marker = \"platform_machine == 'x86_64' or os_name == 'posix'\"",) * 2,
    ],
)
def test_a_lock_loses_its_addresses_and_nothing_else(written: str, kept: str) -> None:
    assert without_addresses(f"# by uv, https://h.example\n{written}\n") == f"{kept}\n"


MOST_LOOPS = 180


@pytest.mark.parametrize("unit", ["\n", "\n\t", "\t", "index\n", '"/#/', "'/", '"a:', "#"])
def test_a_lock_written_to_be_slow_is_read_as_soon_as_another(unit: str) -> None:
    """Nobody else's thread runs meanwhile: 45 loops at most here (2026-11-27); lines of nothing took an hour."""
    lock = unit * (LOG_LIMIT_BYTES // len(unit))
    assert cost(lambda: without_addresses(lock), MOST_LOOPS) < MOST_LOOPS
