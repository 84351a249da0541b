"""What a sentence says of releases, and whether the evidence bears it out."""

import pytest

from knowngood.catalogue.warnings.version_words import MeasuredReleases, claims_in, contradiction

# Broke with 2.6.0 and was mended with 2.9.1, all measured but 2.9.0.
MEASURED = MeasuredReleases(fails=("2.6.0", "2.7.1", "2.8.0"), passes=("2.4.1", "2.5.1", "2.9.1", "2.10.0"))
OF_ONE_RELEASE = MeasuredReleases(fails=("2.8.0",))


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        pytest.param("Fails from torch 2.6 on.", "another answer from 2.6 on", id="from"),
        pytest.param("Since torch 2.6.", "another answer from 2.6 on", id="since"),
        pytest.param("torch 2.6 and later.", "another answer from 2.6 on", id="and later"),
        pytest.param("Models in releases before 2.9.", "another answer with 2.9 than before", id="before"),
        pytest.param("It was fixed in 2.9.1.", "another answer with 2.9.1 than before", id="fixed in"),
        pytest.param("Up to 2.8 it raises.", "another answer after 2.8", id="up to"),
        pytest.param("Came between 2.5 and 2.6.", "another answer between 2.5 and 2.6", id="between"),
        pytest.param("2.7.1 is wrong.", "fails on 2.7.1", id="wrong"),
        pytest.param("2.4 is right.", "passes on 2.4", id="right"),
        pytest.param("**Who meets it.** Users of torch 2.8.", "fails on 2.8", id="who meets it fails"),
        pytest.param("2.8.0, where it was found, is not measured here.", "2.8.0 is not measured", id="not measured"),
    ],
)
def test_a_sentence_about_releases_is_understood(text: str, reading: str) -> None:
    assert [claim.reading for claim in claims_in(text)] == [reading]


def test_a_range_has_two_ends() -> None:
    readings = [claim.reading for claim in claims_in("torch 2.6 to 2.8 are wrong.")]
    assert readings == ["another answer with 2.6 than before", "another answer after 2.8"]


@pytest.mark.parametrize(
    "text",
    [
        "The flag exists from torch 2.7 on.",
        "It is on by default from 2.10 on.",
        "On torch 2.5, variant `big` is wrong.",
        "Wheels of Python 3.12 came out with 2.2.",
        "Triton 2.1 is wrong.",
        "expected 8.8e-39, got 0.0; denormals below 1.2e-38 are wrong.",
        "```python\n# 2.7 is wrong\n```",
        "`torch>=2.7` is right.",
        "With torch 2.6 it is neither right nor wrong.",
        "Read in the sources of 2.7.1, which are wrong.",
    ],
)
def test_what_is_no_statement_about_the_row_is_passed_over(text: str) -> None:
    assert list(claims_in(text)) == []


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        pytest.param("From torch 2.7 on it is wrong.", False, id="it broke earlier"),
        pytest.param("From torch 2.6 on it is wrong.", False, id="it broke then, and was mended since"),
        pytest.param("Up to 2.8 it raises.", True, id="up to the last that fails"),
        pytest.param("Up to 2.9.0 it raises.", True, id="up to one that nobody measured"),
        pytest.param("Up to 2.7 it raises.", False, id="a later one fails"),
        pytest.param("Fixed in 2.9.", True, id="the minor release in which it passes"),
        pytest.param("First fixed in 2.10.", False, id="an earlier one passes"),
        pytest.param("2.6 to 2.8 fail.", True, id="both ends"),
        pytest.param("2.5 to 2.8 fail.", False, id="one end"),
        pytest.param("Came between 2.5 and 2.6.", True, id="exactly there"),
        pytest.param("Came between 2.4 and 2.6.", False, id="wider than what was measured"),
        pytest.param("2.7 is wrong.", True, id="a minor release stands for its own"),
        pytest.param("2.7.0 is right.", True, id="nobody measured it"),
        pytest.param("2.4 and 2.7 are right.", False, id="one of two"),
        pytest.param("2.7.0 was never measured.", True, id="nobody did"),
        pytest.param("2.8.0 is not measured here.", False, id="somebody has since"),
    ],
)
def test_a_statement_is_held_against_what_was_measured(text: str, holds: bool) -> None:
    measured = {"cpu-x86_64": MEASURED, "cuda-sm_90": OF_ONE_RELEASE}
    found = [so for claim in claims_in(text) if (so := contradiction(claim, measured))]
    assert (not found) is holds, found
    assert all("fails on 2.6.0, 2.7.1, 2.8.0, passes on 2.4.1" in one for one in found)


def test_where_one_class_bears_it_out_another_may_differ() -> None:
    (claim,) = claims_in("2.9.1 is wrong.")
    assert contradiction(claim, {"cpu-x86_64": MEASURED})
    assert contradiction(claim, {"cpu-x86_64": MEASURED, "cuda-sm_90": MeasuredReleases(fails=("2.9.1",))}) is None


def test_what_lies_beyond_the_releases_that_were_measured_is_not_contradicted() -> None:
    for text in ("Since torch 2.3.", "Up to 2.8 it raises.", "2.7 is right."):
        (claim,) = claims_in(text)
        assert contradiction(claim, {"cuda-sm_90": OF_ONE_RELEASE}) is None


def test_without_evidence_nothing_is_contradicted() -> None:
    (claim,) = claims_in("2.9.1 is wrong.")
    assert contradiction(claim, {}) is None
