"""Requests that nobody means to send, by chance: shapes of bodies, encodings, counts, depths, against any route."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

MOST_BYTES = 8 << 20
JSON, FORM, TEXT = "application/json", "application/x-www-form-urlencoded", "text/plain"
MULTIPART = "multipart/form-data; boundary=B"


@dataclass(frozen=True)
class Hostile:
    """One request. `chunk` is how many bytes of the body go into one chunk; 0: all of it, with its length."""

    id: str
    method: str
    target: str
    kind: str
    body: bytes
    chunk: int = 0

    @property
    def wire(self) -> Iterator[bytes]:
        length = b"Transfer-Encoding: chunked" if self.chunk else b"Content-Length: %d" % len(self.body)
        kind = b"Content-Type: %s\r\n" % self.kind.encode() if self.kind else b""
        head = f"{self.method} {self.target} HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nConnection: close\r\n".encode()
        yield head + kind + length + b"\r\n\r\n"
        if not self.chunk:
            yield self.body
            return
        for start in range(0, len(self.body), self.chunk):
            piece = self.body[start : start + self.chunk]
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
        yield b"0\r\n\r\n"


def filled(piece: bytes, size: int, begin: bytes = b"", end: bytes = b"") -> bytes:
    return begin + piece * max(1, (size - len(begin) - len(end)) // len(piece)) + end


def names(size: int) -> bytes:
    count = size // 12
    return b"{" + b",".join(b'"n%d":1' % n for n in range(count)) + b',"n1":1}'


def environment(piece: str, size: int, begin: str = "", name: str = "requirements.txt") -> bytes:
    """A file within a question: what a decoder of JSON passes, a reader of that kind of file has to read."""
    quoted = piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").encode()
    head = f'{{"issues": ["fla-160"], "environment": {{"name": "{name}", "content": "{begin}'.encode()
    return filled(quoted, min(size, 5_900_000), head, b'"}}')


def part(field: str, content: bytes, *, file: str = "") -> bytes:
    named = f'; filename="{file}"' if file else ""
    head = f'--B\r\nContent-Disposition: form-data; name="{field}"{named}\r\n\r\n'.encode()
    return head + content + b"\r\n--B--\r\n"


Shape = Callable[[int], bytes]

SHAPES: dict[str, tuple[str, Shape]] = {
    "names": (JSON, names),
    "one name": (JSON, lambda n: filled(b"x", n, b'{"', b'": 1}')),
    "lists": (JSON, lambda n: filled(b"[", n)),
    "objects": (JSON, lambda n: filled(b'{"a":', n)),
    "values": (JSON, lambda n: filled(b"1,", n, b"[", b"1]")),
    "texts": (JSON, lambda n: filled(b'"",', n, b"[", b'""]')),
    "no commas": (JSON, lambda n: filled(b'""', n)),
    "a text": (JSON, lambda n: filled(b"x", n, b'{"text": "', b'"}')),
    "escapes": (JSON, lambda n: filled(b"\\n", n, b'{"text": "', b'"}')),
    "unicode escapes": (JSON, lambda n: filled(b"\\ud83d\\ude00", n, b'{"text": "', b'"}')),
    "half pairs": (JSON, lambda n: filled(b"\\ud83d", n, b'{"text": "', b'"}')),
    "no end": (JSON, lambda n: filled(b"\\", n, b'{"text": "')),
    "digits": (JSON, lambda n: filled(b"9", n, b'{"issues": [', b"]}")),
    "fractions": (JSON, lambda n: filled(b"9", n, b'{"issues": [0.', b"e-9]}")),
    "spaces": (JSON, lambda n: filled(b" ", n, b"{", b"}")),
    "UTF-16": (JSON, lambda n: filled(b"[", n // 2).decode().encode("utf-16")),
    "UTF-32": (JSON, lambda n: filled(b"[", n // 4).decode().encode("utf-32")),
    "no UTF-8": (JSON, lambda n: filled(b"\xff", n, b'"')),
    "issues": (JSON, lambda n: filled(b'"x' + b",x" * 4000 + b'",', n, b'{"issues": [', b'"x"]}')),
    "fields": (FORM, lambda n: filled(b"a=&", n)),
    "one field": (FORM, lambda n: filled(b"x", n, b"text=")),
    "percent signs": (FORM, lambda n: filled(b"%41", n, b"text=")),
    "broken percent signs": (FORM, lambda n: filled(b"%%4", n, b"text=")),
    "plus signs": (FORM, lambda n: filled(b"+", n, b"text=")),
    "half a UTF-8": (FORM, lambda n: filled(b"%f0", n, b"text=")),
    "a pasted build": (FORM, lambda n: filled(b"x", n, b"text=x&build=")),
    "parts": (MULTIPART, lambda n: filled(b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n', n)),
    "a part": (MULTIPART, lambda n: part("environment", b"x" * n)),
    "a file": (MULTIPART, lambda n: part("environment", b"a==1\n" * (n // 5), file="requirements.txt")),
    "almost ends": (MULTIPART, lambda n: part("environment", b"\r\n--\r" * (n // 5), file="x")),
    "line ends": (MULTIPART, lambda n: part("environment", b"\r" * n, file="x")),
    "a header": (MULTIPART, lambda n: filled(b"x", n, b"--B\r\nX: ")),
    "headers": (MULTIPART, lambda n: filled(b"X: y\r\n", n, b"--B\r\n")),
    "punycode": (f"{MULTIPART}; charset=punycode", lambda n: part("issues", b"-" + b"a" * n)),
    "a log": (TEXT, lambda n: filled(b"RuntimeError: x\n", n)),
    "a line": (TEXT, lambda n: filled(b"a", n)),
    "line feeds": (TEXT, lambda n: filled(b"\n", n)),
    "a traceback": (
        TEXT,
        lambda n: filled(b'  File "x.py", line 1, in f\n    f()\n', n, b"Traceback (most recent call last):\n"),
    ),
    "versions": (TEXT, lambda n: filled(b"torch==2.6.0+cu124 ", n)),
    "words": (TEXT, lambda n: filled(b"inductor triton kernel ", n)),
    "bytes": (TEXT, lambda n: random.Random(n).randbytes(n)),  # noqa: S311 - no secret
    "requirements": (JSON, lambda n: environment("a==1\n", n)),
    "requirements in one line": (JSON, lambda n: environment("a", n)),
    "markers": (JSON, lambda n: environment("((", n, "torch==2.6.0 ; ")),
    "clauses": (JSON, lambda n: environment(",<3", n, "torch>=2")),
    "continued lines": (JSON, lambda n: environment("\\\n", n)),
    "tables": (JSON, lambda n: environment("[[a]]\n", n, name="uv.lock")),
    "nested tables": (JSON, lambda n: environment("[", n, "a = ", name="uv.lock")),
    "a dotted key": (JSON, lambda n: environment("a.", n, name="pylock.toml")),
    "a pipfile": (JSON, lambda n: environment("[", n, name="Pipfile.lock")),
    "YAML lists": (JSON, lambda n: environment("[", n, "a: ", name="environment.yml")),
    "YAML dashes": (JSON, lambda n: environment("- ", n, name="environment.yml")),
    "a policy": (JSON, lambda n: environment("a = 1\n", n).replace(b'"environment"', b'"policy"')),
}

TAKING = [
    *("/api/v1/gate", "/api/v1/errors", "/errors", "/sign-in", "/upgrade"),
    *("/api/v1/watchlists/x", "/api/v1/cells/fla-160/x/notes", "/api/v1/results", "/api/v1/voids"),
]
QUERIES: dict[str, Callable[[int], str]] = {
    "parameters": lambda n: "&".join(["a=1"] * n),
    "ampersands": lambda n: "&" * n,
    "issues": lambda n: "issues=" + ",x" * n,
    "a query": lambda n: "q=" + quote("(" * n),
    "a query's words": lambda n: "q=" + "a+" * n,
    "percent signs": lambda n: "q=" + "%41" * n,
    "a build": lambda n: "build=" + "1." * n,
}


def worst() -> list[Hostile]:
    """Each shape at its largest, where it is read."""
    where = {JSON: "/api/v1/gate", FORM: "/errors", TEXT: "/api/v1/errors"}
    found = [
        Hostile(name, "POST", where.get(kind, "/api/v1/gate"), kind, make(MOST_BYTES)[:MOST_BYTES])
        for name, (kind, make) in SHAPES.items()
    ]
    crumbs = Hostile("crumbs", "POST", "/api/v1/gate", JSON, b"x" * 1_300_000, chunk=1)
    return [*found, crumbs]


def by_chance(chance: random.Random, routes: list[str]) -> Hostile:
    """`routes` are addresses without a query, whatever methods they know."""
    if chance.random() < 0.3:
        name = chance.choice(sorted(QUERIES))
        target = f"{chance.choice(routes).partition('?')[0]}?{QUERIES[name](int(10 ** chance.uniform(0, 4.8)))}"[
            :60_000
        ]
        return Hostile(f"query of {name}", "GET", target, "", b"")
    name = chance.choice(sorted(SHAPES))
    kind, make = SHAPES[name]
    body = make(int(10 ** chance.uniform(1, 6.92)))[:MOST_BYTES]
    kind = chance.choice([kind, kind, kind, "", JSON, FORM, TEXT, "application/x+json"])
    chunk = chance.choice([0, 0, 0, 64, 4096, 1 << 20])
    target = chance.choice([*TAKING, *TAKING, *routes])
    return Hostile(name, chance.choice(["POST", "POST", "PUT", "DELETE"]), target, kind, body, chunk)
