"""A package index asked for real: JSON and HTML, logins, parts of wheels, and answers that are broken or hostile."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from knowngood.domain.builds.packages import IndexFile
from knowngood.domain.errors import IndexUnusable
from knowngood_workers.provision.index_config import Index
from knowngood_workers.provision.simple_index import SimpleIndex, UnreadableWheel, printable
from tests.workers.registry import NATIVE, Registry, answering, make_torch, make_wheel, serve

JSON = "application/vnd.pypi.simple.v1+json"
WHEEL = make_torch("9.2.0", tag=NATIVE)


@dataclass
class Place:
    """A server's answers by path: status, headers, body; every request is kept."""

    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    ranges: bool = True
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    host: str = ""

    def page(self, body: object, kind: str = JSON, project: str = "torch") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[f"/simple/{project}/"] = (200, {"Content-Type": kind}, content)

    def file(self, content: bytes, name: str = WHEEL.file) -> None:
        self.answers[f"/files/{name}"] = (200, {}, content)

    def index(self, *, login: str = "") -> SimpleIndex:
        return SimpleIndex(Index({}, ()), only=f"http://{login}{self.host}/simple")


@contextmanager
def place() -> Iterator[Place]:
    made = Place()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append((self.path, dict(self.headers)))
            status, headers, body = made.answers.get(self.path, (404, {}, b""))
            span = self.headers.get("Range", "")
            if span and status == 200 and made.ranges:
                first, last = (int(one) for one in span.removeprefix("bytes=").split("-"))
                headers = {**headers, "Content-Range": f"bytes {first}-{last}/{len(body)}"}
                status, body = 206, body[first : last + 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with answering(Handler) as port:
        made.host = f"127.0.0.1:{port}"
        yield made


@pytest.fixture
def there() -> Iterator[Place]:
    with place() as made:
        yield made


def listed(*files: dict[str, Any]) -> dict[str, Any]:
    return {"meta": {"api-version": "1.1"}, "name": "torch", "files": list(files)}


def told(**more: Any) -> dict[str, Any]:
    return {"filename": WHEEL.file, "url": f"/files/{WHEEL.file}", **more}


def test_an_index_that_speaks_json_is_read_with_metadata_beside_its_wheels() -> None:
    with serve(Registry([WHEEL, make_wheel("triton", "3.2.0")])) as registry:
        index = SimpleIndex(Index({"UV_DEFAULT_INDEX": registry.address}, ()))
        (file,) = index.files_of("torch")
        assert (file.name, file.uploaded, file.yanked, file.metadata) == (
            WHEEL.file,
            datetime(2025, 1, 1, tzinfo=UTC),
            None,
            "",
        )
        assert "Requires-Dist: triton==3.2.0" in index.metadata_of(file)[0]


def test_an_index_that_speaks_html_is_read_with_all_that_its_anchors_say(there: Place) -> None:
    digest = "0" * 64
    page = (
        f'<html><body><h1>Links for torch</h1><a href="../../files/{WHEEL.file}#sha256={digest}" '
        'data-upload-time="2026-10-28T15:19:46Z" data-requires-python="&gt;=3.10" '
        f'data-core-metadata="sha256={digest}">x</a>'
        '<a href="/files/torch-9.1.0-cp311-cp311-manylinux_2_28_x86_64.whl" data-yanked="a &lt;b&gt; flaw">x</a>'
        '<a href="/files/torchvision-1.0-py3-none-any.whl">x</a><a>nothing</a></body></html>'
    )
    there.page(page.encode(), "text/html")
    first, second = there.index().files_of("torch")
    assert first == IndexFile(
        WHEEL.file,
        f"http://{there.host}/files/{WHEEL.file}",
        datetime(2026, 10, 28, 15, 19, 46, tzinfo=UTC),
        None,
        digest,
        ">=3.10",
    )
    assert (second.yanked, second.uploaded, second.metadata) == ("a <b> flaw", None, None)


def test_a_wheel_without_metadata_beside_it_is_read_in_parts_and_never_whole(there: Place) -> None:
    padded = make_wheel(
        "torch", "9.2.0", {"torch/version.py": 'cuda = "12.4"\n', "torch/data.txt": "x" * 900_000}, tag=NATIVE
    )
    there.page(listed(told()))
    there.file(padded.content)
    (file,) = there.index().files_of("torch")
    metadata, version_py = there.index().metadata_of(file)
    assert "Name: torch" in metadata
    assert version_py == 'cuda = "12.4"\n'
    spans = [headers["Range"] for path, headers in there.asked if path.startswith("/files/")]
    read = sum(int(one.split("-")[1]) - int(one.removeprefix("bytes=").split("-")[0]) + 1 for one in spans)
    assert spans
    assert read < len(padded.content) / 2


def test_metadata_that_is_not_what_the_index_says_it_is_does_not_count(there: Place) -> None:
    there.page(listed(told(**{"core-metadata": {"sha256": hashlib.sha256(b"other").hexdigest()}})))
    there.file(WHEEL.content)
    there.answers[f"/files/{WHEEL.file}.metadata"] = (200, {}, b"Name: torch\nRequires-Dist: triton==6.6.6\n")
    (file,) = there.index().files_of("torch")
    assert "triton==3.2.0" in there.index().metadata_of(file)[0]


def test_a_login_goes_to_its_own_host_and_no_other(there: Place) -> None:
    with place() as elsewhere:
        elsewhere.page(listed(told(url=f"http://{there.host}/files/{WHEEL.file}")))
        there.answers["/simple/torch/"] = (302, {"Location": f"http://{elsewhere.host}/simple/torch/"}, b"")
        there.file(WHEEL.content)
        index = there.index(login="reader:se%40cret@")
        (file,) = index.files_of("torch")
        index.metadata_of(file)
        assert there.asked[0][1]["Authorization"] == f"Basic {base64.b64encode(b'reader:se@cret').decode()}"
        assert all("Authorization" not in headers for _, headers in [*elsewhere.asked, *there.asked[1:]])


def test_a_login_stays_with_the_files_of_the_same_host(there: Place) -> None:
    there.page(listed(told()))
    there.file(WHEEL.content)
    index = there.index(login="reader:secret@")
    index.metadata_of(index.files_of("torch")[0])
    assert all("Authorization" in headers for _, headers in there.asked)


def test_a_named_index_takes_its_login_from_the_variables_of_uv(there: Place) -> None:
    there.page(listed(told()))
    told_uv = {
        "UV_DEFAULT_INDEX": f"own-mirror=http://{there.host}/simple",
        "UV_INDEX_OWN_MIRROR_USERNAME": "reader",
        "UV_INDEX_OWN_MIRROR_PASSWORD": "secret",
    }
    SimpleIndex(Index(told_uv, ())).files_of("torch")
    assert there.asked[0][1]["Authorization"] == f"Basic {base64.b64encode(b'reader:secret').decode()}"


def test_extra_indexes_add_what_the_first_has_not_and_folders_are_passed_over(there: Place) -> None:
    there.page(listed(told(yanked=True)))
    with place() as extra:
        extra.page(listed(told(), told(filename="torch-9.3.0-cp311-cp311-manylinux_2_28_x86_64.whl")))
        told_uv = {
            "UV_DEFAULT_INDEX": f"http://{there.host}/simple",
            "UV_INDEX": f"file:///nowhere/simple http://{extra.host}/simple",
        }
        found = SimpleIndex(Index(told_uv, ())).files_of("torch")
    assert [(file.name[:11], file.yanked) for file in found] == [("torch-9.2.0", ""), ("torch-9.3.0", None)]


PAGES: Mapping[str, tuple[object, str, str]] = {
    "no JSON": (b"{", JSON, "JSON that cannot be read"),
    "a thousand brackets": (b"[" * 100_000, JSON, "JSON that cannot be read"),
    "a list": ([], JSON, "no list of files"),
    "no files": ({"meta": {}}, JSON, "no list of files"),
    "files that are none": (listed({"filename": 3}, {"url": "x"}), JSON, "lists no file of torch"),
    "another project": (
        listed({"filename": "numpy-1.0-py3-none-any.whl", "url": "/x"}),
        JSON,
        "lists no file of torch",
    ),
    "a newer API": ({"meta": {"api-version": "2.0"}, "files": []}, JSON, "speaks version 2.0"),
    "a login page": (b"<html><form>Who are you?</form></html>", "text/html", "is no list of files"),
    "no anchors": (b"<html><h1>Links for torch</h1></html>", "text/html", "lists no file of torch"),
    "other addresses": (
        listed(told(url="file:///etc/passwd"), told(url="javascript:x")),
        JSON,
        "lists no file of torch",
    ),
    "bytes": (bytes(range(256)) * 10, "application/octet-stream", "is no list of files"),
}


@pytest.mark.parametrize(("body", "kind", "words"), PAGES.values(), ids=PAGES)
def test_a_page_that_makes_no_sense_is_refused_in_words(there: Place, body: object, kind: str, words: str) -> None:
    there.page(body, kind)
    with pytest.raises(IndexUnusable, match=words) as refused:
        there.index(login="reader:secret@").files_of("torch")
    assert "secret" not in str(refused.value)
    assert there.host not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "is its address right"), (500, "answers 500"), (401, "answers 401")]
)
def test_an_index_that_refuses_is_unusable_in_words(there: Place, status: int, words: str) -> None:
    there.answers["/simple/torch/"] = (status, {}, b"")
    with pytest.raises(IndexUnusable, match=words):
        there.index().files_of("torch")


def test_an_index_that_nobody_answers_for_is_unusable_without_naming_its_host() -> None:
    with place() as gone:
        index = gone.index()
    with pytest.raises(IndexUnusable, match="cannot be asked") as refused:
        index.files_of("torch")
    assert gone.host not in str(refused.value)


def test_a_redirect_to_another_protocol_is_not_followed(there: Place) -> None:
    there.answers["/simple/torch/"] = (302, {"Location": "ftp://127.0.0.1/simple/torch/"}, b"")
    with pytest.raises(IndexUnusable, match="cannot be asked"):
        there.index().files_of("torch")


def test_where_no_index_is_to_be_used_one_can_be_named(there: Place) -> None:
    there.page(listed(told()))
    closed = Index({}, (), no_index=True)
    with pytest.raises(IndexUnusable, match="name one with --index"):
        SimpleIndex(closed).files_of("torch")
    assert SimpleIndex(closed, only=f"http://{there.host}/simple").files_of("torch")


def _whole(there: Place) -> None:
    there.ranges = False
    there.file(WHEEL.content)


def _no_zip(there: Place) -> None:
    there.file(b"no zip at all" * 100)


def _cut(there: Place) -> None:
    there.file(WHEEL.content[:-30])


def _nothing(there: Place) -> None:
    there.file(b"")


def _bomb(there: Place) -> None:
    there.file(make_wheel("torch", "9.2.0", {"torch/version.py": "x" * (3 << 20)}, tag=NATIVE).content)


@pytest.mark.parametrize("given", [_whole, _no_zip, _cut, _nothing, _bomb])
def test_a_wheel_that_cannot_be_read_is_named(there: Place, given: Callable[[Place], None]) -> None:
    given(there)
    there.page(listed(told()))
    (file,) = there.index().files_of("torch")
    with pytest.raises(UnreadableWheel, match=r"torch-9\.2\.0"):
        there.index().metadata_of(file)


def test_where_only_the_metadata_can_be_had_it_is_enough(there: Place) -> None:
    _whole(there)
    there.page(listed(told(**{"core-metadata": True})))
    there.answers[f"/files/{WHEEL.file}.metadata"] = (200, {}, WHEEL.metadata.encode())
    assert there.index().metadata_of(there.index().files_of("torch")[0]) == (WHEEL.metadata, "")


@pytest.mark.parametrize("text", ["2026-13-45", "yesterday", "", "\x00"])
def test_a_time_that_is_none_is_not_told(there: Place, text: str) -> None:
    there.page(listed(told(**{"upload-time": text})))
    assert there.index().files_of("torch")[0].uploaded is None


def test_a_strangers_text_is_one_line_of_printable_signs() -> None:
    assert printable("a\n\x1b[31mb\u202ec", 20) == "a [31mb c"
    assert printable("x" * 99, 5) == "xxxxx..."
