"""A package index on this machine: hand-made wheels served as PEP 691 JSON, with faults to order. No network needed."""

import base64
import hashlib
import io
import json
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CPYTHON = f"cp{PYTHON.replace('.', '')}"
NATIVE = f"{CPYTHON}-{CPYTHON}-manylinux_2_28_x86_64"
PURE = "py3-none-any"


@dataclass(frozen=True)
class MadeWheel:
    file: str
    content: bytes
    metadata: str = ""
    uploaded: str = "2025-01-01T00:00:00Z"
    yanked: str | bool = False

    @property
    def project(self) -> str:
        return self.file.partition("-")[0].replace("_", "-").lower()


def make_wheel(
    name: str,
    version: str,
    files: Mapping[str, str] | None = None,
    *,
    requires: tuple[str, ...] = (),
    uploaded: str = "2025-01-01T00:00:00Z",
    tag: str = PURE,
) -> MadeWheel:
    """A wheel as any index serves it; without `files` it holds one empty module of its name."""
    info = f"{name}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata = head + "".join(f"Requires-Dist: {one}\n" for one in requires)
    held = {
        **(files if files is not None else {f"{name}/__init__.py": f'__version__ = "{version}"\n'}),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in held.items())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in {**held, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path), text)  # ZipInfo: a fixed date, so equal wheels have equal hashes
    return MadeWheel(f"{name}-{version}-{tag}.whl", packed.getvalue(), metadata, uploaded)


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make_torch(version: str = "9.1.0", *, imported: str = "", triton: str = "3.2.0", tag: str = PURE) -> MadeWheel:
    """A torch that says it is `imported` (by default built for CUDA 12.4) and pins its Triton."""
    told = imported or f"{version}+cu124"
    cuda = "None" if told.endswith("+cpu") else '"12.4"'
    files = {
        "torch/__init__.py": f'from torch import version\nfrom torch import graph\n__version__ = "{told}"\n',
        "torch/version.py": f'cuda = {cuda}\ngit_version = "0123abc"\n',
        "torch/graph.py": "def trace(f):\n    return f\n",
        "torch/tests/test_graph.py": "from torch import graph\n",
    }
    return make_wheel("torch", version, files, requires=(f"triton=={triton}",) if triton else (), tag=tag)


def usual_wheels() -> list[MadeWheel]:
    """The wheels that a build needs: torch, its Triton and another, numpy of two dates, setuptools, and one to probe
    with.
    """
    return [
        make_torch(),
        make_wheel("triton", "3.2.0"),
        make_wheel("triton", "3.3.0"),
        make_wheel("numpy", "1.26.4"),
        make_wheel("numpy", "2.9.0", uploaded="2025-12-01T00:00:00Z"),
        make_wheel(
            "setuptools",
            "75.0.0",
            {"setuptools/__init__.py": '__version__ = "75.0.0"\n', "setuptools/_vendor/a-1.dist-info/RECORD": "a,,\n"},
        ),
        make_wheel("packaging", "24.0"),
    ]


@dataclass
class Registry:
    """`status` answers every question where it is not 200; `gate` holds back wheels until it is set."""

    wheels: list[MadeWheel]
    tells_times: bool = True
    tells_sizes: bool = True
    status: int = 200
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    fetched: list[str] = field(default_factory=list)
    address: str = ""

    def page(self, project: str) -> bytes | None:
        files = [self._file(wheel) for wheel in self.wheels if wheel.project == project]
        versions = sorted({wheel.file.split("-")[1] for wheel in self.wheels if wheel.project == project})
        told = {"meta": {"api-version": "1.1"}, "name": project, "versions": versions, "files": files}
        return json.dumps(told).encode() if files else None

    def _file(self, wheel: MadeWheel) -> dict[str, object]:
        told: dict[str, object] = {
            "filename": wheel.file,
            "url": f"/files/{wheel.file}",
            "hashes": {"sha256": hashlib.sha256(wheel.content).hexdigest()},
            "core-metadata": True,
            "yanked": wheel.yanked,
        }
        if self.tells_sizes:
            told["size"] = len(wheel.content)
        return told | ({"upload-time": wheel.uploaded} if self.tells_times else {})

    def file(self, name: str) -> bytes | None:
        for wheel in self.wheels:
            if name == f"{wheel.file}.metadata":
                return wheel.metadata.encode()
            if name == wheel.file:
                return wheel.content
        return None


@contextmanager
def serve(registry: Registry) -> Iterator[Registry]:
    """Serve it while the block runs, at `registry.address`. Wheels pass unless the test clears the gate."""
    registry.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            body, kind = self._find(with_body=with_body)
            status = registry.status if registry.status != 200 else 200 if body is not None else 404
            content = body if body is not None and status == 200 else b""
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def _find(self, *, with_body: bool) -> tuple[bytes | None, str]:
            room, _, rest = self.path.strip("/").partition("/")
            if room == "simple":
                project = rest.strip("/").rpartition("/")[2]  # as on a torch backend's index: simple/cu126/torch/
                return registry.page(project), "application/vnd.pypi.simple.v1+json"
            if with_body and rest.endswith(".whl"):
                registry.asked.set()
                registry.gate.wait(30)
                registry.fetched.append(rest)
            return registry.file(rest), "application/octet-stream"

        def log_message(self, *_: object) -> None:
            return

    with answering(Handler) as port:
        registry.address = f"http://reader:secret@127.0.0.1:{port}/simple"
        try:
            yield registry
        finally:
            registry.gate.set()


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on a free port of loopback while the block runs; gives the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that goes away is no error here
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_wheels(folder: Path, *wheels: MadeWheel) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        (folder / wheel.file).write_bytes(wheel.content)
    return folder
