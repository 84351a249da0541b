import re

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.gate.decision import MeasuredWorkaround, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import DECISIONS, active_reasons, one_line
from knowngood.gate.renderers.markdown import answer_markdown, escaped
from tests.gate.rulings import BLOCKED, SERVER, UNTESTED, make_reason, make_ruling, rulings, texts

GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
COMMONMARK = MarkdownIt("commonmark")


def top(tokens: list[Token]) -> list[str]:
    """The kinds of the outermost blocks."""
    return [token.type for token in tokens if token.level == 0 and not token.type.endswith("_close")]


def visible(inline: Token) -> str:
    """The text that a reader sees, without our spaces of no width. Raw HTML must not be there at all."""
    children = inline.children or []
    assert not {"html_inline", "image", "hardbreak"} & {child.type for child in children}
    return "".join("\n" if child.type == "softbreak" else child.content for child in children).replace("\u200b", "")


def rows_of(text: str) -> list[list[str]]:
    tokens = GITHUB.parse(text)
    cells = [(token, tokens[at + 1]) for at, token in enumerate(tokens) if token.type in {"tr_open", "td_open"}]
    rows: list[list[str]] = []
    for token, inline in cells:
        if token.type == "tr_open":
            rows.append([])
        else:
            rows[-1].append(visible(inline))
    return rows[1:]


def plain(text: str) -> str:
    """As a table cell shows it: without spaces of no width at all, and trimmed."""
    return one_line(text).replace("\u200b", "").strip()


def test_a_refusal_has_the_answer_the_table_and_the_cure() -> None:
    text = answer_markdown(BLOCKED, SERVER)

    assert text.startswith("**Blocked:** 1 of 5 watched issues blocks torch 2.5.1 (CUDA 12.4)\n\n")
    assert rows_of(text) == [
        [
            "✕' blocks",
            "xla-8464 PyTorch/XLA reuses an executable that donates a live buffer: the process aborts",
            "CPU",
            "fails, has a workaround, measured 3 days ago",
            "2.6.0",
        ],
        [
            "✕ warns",
            f"pytorch-1 {make_reason().title} (∆ wrong numbers, no error)",
            "CPU",
            "fails, no workaround found, measured 200 days ago, stale",
            "2.6.0",
        ],
    ]
    assert "[xla-8464](<https://knowngood.example/team/cells/xla-8464/torch-2.5.1%2Bcu124?hardware=cpu-x86_64>)" in text
    assert "> ```bash\n> export XLA_ENABLE_PARAM_ALIASING=0\n> ```" in text
    assert "- **pytorch-4** on CPU passes: ignored" in text
    assert "- passes (1): pytorch-2" in text


def test_only_full_addresses_become_links() -> None:
    assert "](" not in answer_markdown(BLOCKED)
    assert "](" not in answer_markdown(make_ruling(make_reason(evidence_url="javascript:alert(1)")), SERVER)
    assert "](" not in answer_markdown(make_ruling(make_reason(evidence_url="https://x/> [a](b)")), SERVER)


def test_what_is_not_shown_is_counted_and_linked() -> None:
    many = make_ruling(*(make_reason(f"toy-{number}") for number in range(14)))

    text = answer_markdown(many, SERVER, shown=10)

    assert len(rows_of(text)) == 10
    assert "And 4 more: [all of this build](<https://knowngood.example/team/builds/torch-2.5.1%2Bcu124>)." in text
    assert "And 4 more; `--format json` tells them all." in answer_markdown(many, shown=10)
    assert len(rows_of(answer_markdown(many, SERVER))) == 14


def test_an_untested_environment_names_its_neighbours() -> None:
    text = answer_markdown(UNTESTED)

    assert "build **not tested**" in text
    assert "nearest, not used: torch 2.5.1 (CUDA 12.4), torch 2.6.0 (CUDA 12.4)" in text
    assert "watched, without an answer (2): pytorch-1, pytorch-2" in text


@given(texts)
def test_escaped_text_reads_as_it_was_written(text: str) -> None:
    for parser in (COMMONMARK, GITHUB):
        tokens = parser.parse(f"so: {escaped(text)}")
        assert top(tokens) == ["paragraph_open"]
        assert visible(tokens[1]).strip() == f"so: {plain(text)}".strip()


@pytest.mark.parametrize("text", ["@torch.compile", "see #123", "a !x", "@a@b##1"])
def test_text_calls_nobody_and_refers_to_nothing(text: str) -> None:
    assert not re.search(r"[@#]\w", escaped(text))


@given(rulings)
def test_no_text_leaves_its_cell_or_adds_a_block(ruling: Ruling) -> None:
    text = answer_markdown(ruling, SERVER)

    text.encode()
    tokens = GITHUB.parse(text)
    assert tokens[1].content.startswith(f"**{DECISIONS[ruling.decision]}:**")
    rows = rows_of(text)
    silent = {True: " (∆ wrong numbers, no error)", False: ""}
    expected = [f"{plain(one.issue)} {plain(one.title)}{silent[one.silent]}".strip() for one in active_reasons(ruling)]
    assert [row[1].strip() for row in rows] == expected
    assert {len(row) for row in rows} <= {5}
    assert set(top(tokens)) <= {"paragraph_open", "table_open", "bullet_list_open", "blockquote_open"}
    outside = [token for token in tokens if token.type == "inline" and not inside_a_quote(tokens, token)]
    for token in outside:
        visible(token)


def inside_a_quote(tokens: list[Token], wanted: Token) -> bool:
    depth = 0
    for token in tokens:
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token is wanted:
            return depth > 0
    raise AssertionError("the token is not of this text")


@pytest.mark.parametrize(
    "snippet",
    [
        "```\nnever closed",
        "<!-- never closed",
        "<details>\n\nnever closed",
        "~~~~\n```\n~~~",
        "| a |\n| - |\n| b",
        "> a",
    ],
)
def test_what_a_snippet_leaves_open_ends_with_it(snippet: str) -> None:
    workaround = MeasuredWorkaround("c", "C", WorkaroundVerdict.EFFECTIVE, "", snippet)
    text = answer_markdown(make_ruling(make_reason(workarounds=(workaround,)), make_reason("toy-2", Effect.PASS)))

    assert top(GITHUB.parse(text))[-2:] == ["blockquote_open", "bullet_list_open"]


def test_code_in_a_snippet_stays_as_it_is() -> None:
    snippet = "```python\nif a < b:\n\treturn '|', \"`\", '*'\n```"
    text = answer_markdown(
        make_ruling(make_reason(workarounds=(MeasuredWorkaround("c", "C", WorkaroundVerdict.EFFECTIVE, "", snippet),)))
    )

    fences = [token for token in GITHUB.parse(text) if token.type == "fence"]
    assert [token.content for token in fences] == ["if a < b:\n\treturn '|', \"`\", '*'\n"]
    assert fences[0].info == "python"
