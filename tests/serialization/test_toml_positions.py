"""Lines of TOML keys."""

import tomllib
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowngood.serialization.toml_positions import KeyPath, line_of_long_key, map_lines, outline_of

TEXT = '''title = "a" # x = 1
summary = """
[not.a.table]
key = "x" """""
[a."b c".d]
x.y = [ 1, # c ]
  {k = 'v', z = [
   1979-05-27 07:32:00, 2]},
]
[[v]]
id = 1
[v.params]
q = 2
[[v]]
id = \'\'\'
id = 4\'\'\'
[v.params]
q = {r = 1, s."t" = 3}
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("summary",), 2),
        (("a",), 5),
        (("a", "b c", "d"), 5),
        (("a", "b c", "d", "x", "y"), 6),
        (("a", "b c", "d", "x", "y", 1, "z"), 7),
        (("a", "b c", "d", "x", "y", 1, "z", 1), 8),
        (("v",), 10),
        (("v", 0, "id"), 11),
        (("v", 0, "params", "q"), 13),
        (("v", 1), 14),
        (("v", 1, "id"), 15),
        (("v", 1, "params"), 17),
        (("v", 1, "params", "q", "s", "t"), 18),
    ],
)
def test_a_key_stands_on_its_line(path: KeyPath, line: int) -> None:
    assert map_lines(TEXT).line_of(path) == line


def test_a_key_that_is_not_there_stands_where_its_table_does() -> None:
    lines = map_lines(TEXT)

    assert lines.line_of(("v", 1, "title")) == 14
    assert lines.line_of(("nothing", "at", "all")) == 1


def test_windows_line_ends_count_once() -> None:
    assert map_lines('a = 1\r\nb = """\r\n"""\r\nc = 2\r\n').line_of(("c",)) == 4


KEYS = st.sampled_from(["a", "b-c", '"d e"', "'f'", "g.h"])
SCALARS = st.sampled_from(
    ["1", "-0x1", "1.5e3", "true", '"]"', "'}'", '"""a\n]"""', '"\\""', "1979-05-27 07:32:00", "'''\nx = 1'''", '"#"']
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ", # ]\n".join(items) + "\n]"),
        st.tuples(KEYS, SCALARS.filter(lambda text: "\n" not in text)).map(lambda item: f"{{ {item[0]} = {item[1]} }}"),
    ),
    max_leaves=6,
)
HEADERS = st.tuples(KEYS, st.booleans()).map(lambda header: f"[[{header[0]}]]" if header[1] else f"[ {header[0]} ] # x")
STATEMENTS = st.one_of(st.tuples(KEYS, VALUES).map(" = ".join), HEADERS, st.just("# a = 1"), st.just(""))


@given(st.lists(STATEMENTS, max_size=8).map("\n".join))
def test_every_key_of_sound_toml_is_found_on_a_line_that_holds_it(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = map_lines(text)
    for path in _paths(data, ()):
        place = reduce(lambda place, key: place.inside[key], path, lines)
        assert place.line == lines.line_of(path)
        written = text.split("\n")[place.line - 1]
        assert not isinstance(path[-1], str) or path[-1] in written


def _paths(value: object, path: KeyPath) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in ((*path, key), *_paths(inner, (*path, key)))]


@given(st.text(alphabet="ab.=[]{}\"'\n#, \\1", max_size=40))
@example(r'"\1"')
def test_text_that_is_no_toml_raises_nothing(text: str) -> None:
    map_lines(text)


@pytest.mark.parametrize("part", ["a", '"a"', "'a'", '"!"', '"\\""', '"\'"', "'\"'", "'\\'", '""', '"# ."', "\u00e4"])
@pytest.mark.parametrize(
    "before", ["", "x = '.'\n[", "x = { ", 'x = """\n"""\n', "# '\n", "x = 'a\\'\n", 'x = "\\\\"\n']
)
def test_a_key_of_too_many_parts_is_found_however_they_are_quoted(part: str, before: str) -> None:
    text = f"{before}{' . '.join([part] * 13)} = 1"
    assert line_of_long_key(outline_of(text), 12) == text.count("\n") + 1
    assert not line_of_long_key(outline_of(text), 13)


@pytest.mark.parametrize("value", ['"a.b.c.d.e"', "'''\na.b.c.d.e\n'''", '"""\\""" a.b.c.d.e""""', "1 # a.b.c.d.e"])
def test_dots_in_texts_and_comments_make_no_key(value: str) -> None:
    assert line_of_long_key(outline_of(f"x = {value}\n"), 1) == 0
