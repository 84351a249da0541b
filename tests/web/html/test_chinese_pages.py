"""Pages in Chinese are Chinese: three Latin words in a row stand in none, but for names, code and what is quoted."""

import random
import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

import html5lib
import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store.knowledge.snapshot import read_shipped
from knowngood.web.urls import cell_address, issue_address

KNOWN = read_shipped().knowledge.known
NAMES = frozenset(
    {"Attention", "Flash", "Linear"}
    | {
        "AMD",
        "AOTAutograd",
        "CPU",
        "CSV",
        "CUDA",
        "Custom",
        "Dynamo",
        "FlexAttention",
        "GPU",
        "GitHub",
        "Good",
        "Inductor",
    }
    | {"Intel", "JSON", "JUnit", "Known", "NVIDIA", "OSV", "PyTorch", "Python", "SARIF", "Triton", "operators", "torch"}
)
# Error messages, as titles in Chinese quote them.
QUOTED_BY_TITLES = " | ".join(issue.title_zh.replace("`", "") for issue in KNOWN.issues.values())
_WORD = r"[A-Za-z][A-Za-z'-]*[A-Za-z]"
_RUN = re.compile(rf"{_WORD}(?:[ ,;:]+{_WORD}){{2,}}")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|《[^》]*》|`[^`]*`|'[^']*'|\([^)]*\)|（[^）]*）")  # noqa: RUF001 - Chinese
_TERM = re.compile(r"\w+:[^\s:]\S*|\b[a-z]\w*-\d+\b")  # of a query, or the id of an issue
_SKIPPED = {"code", "pre", "samp", "kbd", "script", "style", "textarea", "q", "blockquote", "option", "svg"}
_BLOCKS = {"p", "li", "td", "th", "div", "section", "h1", "h2", "h3", "dt", "dd", "tr", "summary", "main", "label", "a"}
_SAID = ("aria-label", "title", "alt", "placeholder")


def parsed(html: str) -> Element:
    root: Element = html5lib.parse(html, namespaceHTMLElements=False)
    return root


def english_in(page: Element) -> set[str]:
    found: set[str] = set()
    for text in _texts(page, _SAID):
        plain = _TERM.sub(" | ", _QUOTED.sub(" | ", " ".join(text.split())))
        for run in _RUN.findall(plain):
            words = [word for word in re.findall(_WORD, run) if word not in NAMES]
            if len(words) >= 3 and run not in QUOTED_BY_TITLES:
                found.add(run)
    return found


_MARK = re.compile(r".{0,12}[\u4e00-\u9fff）][.:;](?=\s|$).{0,8}")  # noqa: RUF001 - Chinese


def english_marks_in(page: Element) -> set[str]:
    """What is seen of sentences in Chinese that end as English ones do."""
    return {found for text in _texts(page, ()) for found in _MARK.findall(" ".join(text.split()))}


def _texts(element: Element, said: Sequence[str]) -> Iterator[str]:
    """By blocks, so that words of neighbouring cells do not count as one row of words; `said` names attributes."""
    parts: list[str] = []
    yield from _walk(element, parts, said)
    yield "".join(parts)


def _walk(element: Element, parts: list[str], said: Sequence[str]) -> Iterator[str]:
    tag: object = element.tag  # of a comment it is a function
    if (
        tag in _SKIPPED
        or (element.get("lang") or "").startswith("en")
        or "mono" in (element.get("class") or "").split()
    ):
        parts.append(" | ")
        return
    yield from (value for name in said if (value := element.get(name)))
    own = [] if tag in _BLOCKS else parts
    own.append(element.text or "")
    for child in element:
        yield from _walk(child, own, said)
        own.append(child.tail or "")
    if own is not parts:
        yield "".join(own)
        parts.append(" | ")


def addresses() -> list[str]:
    """Every kind of page, and a sample of issues with cells of each verdict."""
    chance = random.Random(20261123)  # noqa: S311 - no secret
    issues = chance.sample(sorted(KNOWN.issues), 12)
    cells = [cell for issue in sorted(KNOWN.issues) for cell in KNOWN.stored(issue)]
    of_each = [next((cell for cell in cells if cell.verdict is verdict), None) for verdict in Verdict]
    chosen = [*chance.sample(cells, 12), *(cell for cell in of_each if cell is not None)]
    every = [
        *(
            "/",
            "/?mine=2.7.1",
            "/?mine=2.5.1&gpu=H100",
            "/my-build",
            "/environment?build=2.7.1",
            "/matrix?view=lifespans",
            "/charts",
        ),
        *("/matrix?hardware=cuda-sm_90", "/matrix?q=status:flaky+build:9.9"),
        *("/upgrade", "/upgrade?from=2.5.1", "/upgrade?from=2.15.0"),
        *("/compare", "/compare?a=2.5.1&b=2.11.0&hardware=cuda-sm_90"),
        *("/search", "/search?q=compile+stride", "/search?q=MI300X", "/search?q=%23199999", "/search?q=zzzqqq"),
        *("/errors", "/runs", "/changes", "/watchlists", "/coverage", "/hygiene", "/quality", "/workers", "/signs"),
        *("/sign-in", "/nothing", "/issues/pytorch-1", "/releases/9.9", "/matrix?hardware=nope", "/matrix?q=foo:bar"),
        *(issue_address(issue) for issue in issues[:4]),
        *(issue_address(cell.issue, build=cell.build, hardware=cell.hardware) for cell in chosen[:2]),
        *(cell_address(*cell.key) for cell in chosen[12:]),
        *(
            "/releases",
            "/releases/2.15",
            "/releases/2.13.0",
            "/releases/2.12.1",
            "/releases/2.9.0",
            "/releases/2.7.1%2Bcu128",
        ),
        *("/matrix", "/matrix?sort=severity", "/upgrade?from=2.7.1&component=Inductor", "/compare?a=2.7.1&b=2.8.0"),
        *(issue_address(issue) for issue in issues[4:]),
        *(issue_address(cell.issue, build=cell.build, hardware=cell.hardware) for cell in chosen[2:6]),
        *(cell_address(*cell.key) for cell in chosen[:12]),
        "/releases/2.2.2",
    ]
    return list(dict.fromkeys(every))


@pytest.fixture
def reader(shipped_client: TestClient) -> TestClient:
    shipped_client.cookies.set("lang", "zh")
    return shipped_client


@pytest.mark.sample(40, "soak")
@pytest.mark.parametrize("address", addresses())
def test_a_page_in_chinese_is_chinese(reader: TestClient, address: str) -> None:
    response = reader.get(address)
    assert '<html lang="zh"' in response.text
    page = parsed(response.text)
    assert english_in(page) == set()
    assert english_marks_in(page) == set()


PLANTED = """
nothing was measured here yet | fails on all builds | see the whole list | one workaround is known | ask the owner first
this build is too old | no results so far | open the cell now | compare the two builds | the last run failed
choose another hardware class | what happens after that | there are no changes | the control passed too
try it again soon | only one run counts | this page is stale | newer releases are fine | copy the whole note
we cannot say yet
"""


def test_twenty_english_sentences_are_found_wherever_they_are_planted(reader: TestClient) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    pages = [reader.get(address).text for address in ("/", "/matrix", "/charts", "/issues/pytorch-151290", "/nothing")]
    sentences = [one.strip() for line in PLANTED.strip().splitlines() for one in line.split("|")]
    assert len(sentences) == 20
    for n, page in enumerate(pages):
        ends = [found.end() for found in re.finditer(r"</h1>|</h2>|</p>|</li>", page)]
        for planted in ("<p>{}</p>", '<a href="/" title="{}">x</a>'):
            told = page
            for at, sentence in zip(sorted(chance.choices(ends, k=4), reverse=True), sentences[n::5], strict=True):
                told = told[:at] + planted.format(sentence) + told[at:]
            assert english_in(parsed(told)) == set(sentences[n::5])
