"""Forms are read as the standard library reads them, however large, and in little memory."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.web import forms
from knowngood.web.errors import InvalidParameter
from tests.counting import peak_bytes

PIECES = ["a", "%", "%4", "%41", "%c3%a9", "%C3", "+", "&", "=", "é", "\n", "aaaaa"]


def read(body: bytes) -> dict[str, str]:
    return dict(forms._read_form(body))


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.integers(3, 9))
def test_a_form_holds_what_the_standard_library_finds_in_it(text: str, piece: int) -> None:
    found = dict(parse_qsl(text, keep_blank_values=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(forms, "_PIECE", piece)
        assert read(text.encode()) == found


def test_a_form_of_percent_signs_takes_little_memory() -> None:
    body = b"text=" + b"%%4" * 200_000
    assert len(read(body)["text"]) == 600_000
    assert peak_bytes(lambda: read(body)) < 12_000_000  # the standard library takes 77 MB


@pytest.mark.parametrize(
    ("body", "said"), [(b"a=\xff", "the form is not UTF-8"), (b"a=&" * 2_501, "the form has more than 2,500 fields")]
)
def test_what_is_no_form_is_refused_with_a_sentence(body: bytes, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        read(body)
