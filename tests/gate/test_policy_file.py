"""The policy file: what it may say, how it is refused, and that its schema says the same."""

import json
import string
import tomllib
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.catalogue.loader import shipped_catalogue
from knowngood.domain.errors import BadPolicy
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.gate.policy import Accept, Effect, Ignore, Policy, RemedyFilter, Variants
from knowngood.gate.policy_file import (
    POLICY_CHARACTERS,
    PUBLISHED,
    PolicyFile,
    parse_policy,
    policy_of,
    policy_schema,
)

EXAMPLE = Path(__file__).parents[2] / "docs" / "knowngood.toml"
IGNORE = '[[ignore]]\nissue = "xla-8464"\nreason = "a reason"\nauthor = "ann"\nexpires = 2027-03-31\n'


def as_json(text: str) -> Any:
    return json.loads(json.dumps(tomllib.loads(text), default=date.isoformat))


def refusal(text: str, where: str = "knowngood.toml") -> str:
    with pytest.raises(BadPolicy) as refused:
        parse_policy(text, where)
    return str(refused.value)


@pytest.mark.parametrize("text", ["", "# nothing\n", "[watch]\n"])
def test_an_empty_file_is_the_policy_that_nobody_wrote(text: str) -> None:
    assert parse_policy(text) == Policy()


def test_every_rule_of_a_policy_can_be_written() -> None:
    policy = parse_policy(
        """
        hardware = ["cpu-x86_64", "cuda-sm_90"]
        python = "3.12"
        platform = "linux-x86_64"
        affected = "warn"
        flaky = "pass"
        different_failure = "insufficient"
        bigger = "block"
        more_work = "pass"
        slower = "block"
        unknown = "block"
        stale = "insufficient"
        remedy = "with_remedy"
        minimum = "high"
        silent_always = false
        release_days = 10
        nightly_days = 2
        snapshot_days = 3
        only_new = true
        unknown_on_base = "block"
        base = "torch-2.5.1+cu124"
        refuse_assumed = true
        refuse_unstated = true
        accept = "measured"
        accept_variant = true
        variants = "reported"
        [watch]
        issues = ["xla-8464"]
        components = ["Inductor C++"]
        packages = ["torch_xla"]
        severity = "critical"
        lists = ["team-a"]
        [applied]
        xla-8464 = ["clone", "no_aliasing"]
        "pytorch/pytorch#1" = ["eager"]
        [[ignore]]
        issue = "fla-160"
        reason = "一条理由"
        author = "ann"
        expires = 2027-03-31
        workaround = "eager"
        """
    )
    assert policy == Policy(
        watch=Watch(("xla-8464",), ("Inductor C++",), ("torch_xla",), Severity.CRITICAL, ("team-a",)),
        hardware=("cpu-x86_64", "cuda-sm_90"),
        python="3.12",
        platform="linux-x86_64",
        affected=Effect.WARN,
        flaky=Effect.PASS,
        different_failure=Effect.INSUFFICIENT,
        bigger=Effect.BLOCK,
        more_work=Effect.PASS,
        slower=Effect.BLOCK,
        unknown=Effect.BLOCK,
        stale=Effect.INSUFFICIENT,
        remedy=RemedyFilter.WITH_REMEDY,
        minimum=Severity.HIGH,
        silent_always=False,
        release_days=10,
        nightly_days=2,
        only_new=True,
        base="torch-2.5.1+cu124",
        unknown_on_base=Effect.BLOCK,
        applied={"xla-8464": ("clone", "no_aliasing"), "pytorch/pytorch#1": ("eager",)},
        ignores=(Ignore("fla-160", "一条理由", "ann", date(2027, 3, 31), "eager"),),
        refuse_assumed=True,
        refuse_unstated=True,
        accept=Accept.MEASURED,
        accept_variant=True,
        variants=Variants.REPORTED,
        snapshot_days=3,
    )
    left_at_default = [one.name for one in fields(Policy) if getattr(policy, one.name) == getattr(Policy(), one.name)]
    assert left_at_default == []


def test_the_keys_of_the_file_are_the_rules_of_a_policy() -> None:
    rules = {field.name for field in fields(Policy)}
    assert set(PolicyFile.model_fields) == rules - {"ignores"} | {"ignore"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('unknwon = "pass"', 'knowngood.toml:1: unknown key "unknwon"; did you mean "unknown"?'),
        ('\nunknown = "maybe"', "knowngood.toml:2: \"unknown\" is 'maybe'; write 'pass', 'warn', 'insufficient'"),
        ('[watch]\nissue = ["x"]', 'knowngood.toml:2: [watch] unknown key "issue"; did you mean "issues"?'),
        ('[watch]\nissues = "x"', 'knowngood.toml:2: [watch] "issues" must be a list'),
        ('[watch]\nissues = ["x", 3]', 'knowngood.toml:2: [watch] "issues" is 3; input should be a valid string'),
        ('[watch]\nseverity = "bad"', "knowngood.toml:2: [watch] \"severity\" is 'bad'; write 'low', 'medium'"),
        ('watch = "x"', 'knowngood.toml:1: "watch" must be a table'),
        ("release_days = 0", 'knowngood.toml:1: "release_days" is 0; input should be greater than or equal to 1'),
        ("release_days = true", '"release_days" is True; input should be a valid integer'),
        ("release_days = 1.5", '"release_days" is 1.5; input should be a valid integer'),
        ("release_days = 0x" + "f" * 5000, '"release_days" is a very large number'),
        ("release_days = 99999999", "input should be less than or equal to 36500"),
        ('only_new = "yes"', "\"only_new\" is 'yes'; input should be a valid boolean"),
        ('base = " "', '"base": must not be blank'),
        ('hardware = ["a\\nb"]', "must be one line of at most 500 printable characters"),
        ('hardware = ["a\\u0000"]', "must be one line of at most 500 printable characters"),
        (f'base = "{"x" * 501}"', "must be one line of at most 500 printable characters"),
        ('[applied]\nx = "y"', 'knowngood.toml:2: [applied] "x" must be a list'),
        ('[applied]\n"\\u0007" = ["y"]', "must be one line of at most 500 printable characters"),
        (IGNORE.replace('author = "ann"\n', ""), 'knowngood.toml:1: [ignore] "author" is missing'),
        (IGNORE.replace("2027-03-31", '"soon"'), "knowngood.toml:5: [ignore] \"expires\" is 'soon'; input should be"),
        (
            IGNORE.replace("2027-03-31", "2027-03-31T12:00:00Z"),
            '"expires" is 2027-03-31T12:00:00+00:00; input should be',
        ),
        (IGNORE.replace("2027-03-31", "1803945600"), '"expires" is 1803945600; input should be a valid date'),
        (IGNORE + IGNORE.replace("reason", "raeson"), 'knowngood.toml:8: [ignore] unknown key "raeson"; did you mean'),
        (IGNORE.replace("[[ignore]]", "[ignore]"), '"ignore" must be a list (of tables: [[ignore]])'),
        ("a = ", "knowngood.toml: is not TOML: Invalid value (at end of document)"),
        ("a = 1\na = 2", "knowngood.toml: is not TOML: Cannot overwrite a value"),
        ("a = " + "9" * 5000, "knowngood.toml: is not TOML we can read"),
        ("a = " + "[" * 5000, "knowngood.toml: is not TOML we can read"),
        ("#" * (POLICY_CHARACTERS + 1), "characters; a policy has at most 131072"),
        (".".join(["a"] * 60_000) + " = 1", "has a key of more than 32 parts"),
        ("[" + " . ".join(["'a b'"] * 40) + "]", "has a key of more than 32 parts"),
        ("hardware = [1]", 'knowngood.toml:1: "hardware" is 1; input should be a valid string'),
    ],
)
def test_what_a_policy_cannot_hold_is_refused_with_its_line_and_key(text: str, words: str) -> None:
    assert words in refusal(text)


def test_all_problems_are_told_in_their_order_up_to_five() -> None:
    told = refusal("".join(f"key{n} = {n}\n" for n in range(9)), "rules.toml").split("; ")
    assert [part.split(":")[1] for part in told if part.startswith("rules.toml")] == ["1", "2", "3", "4", "5"]
    assert told[-1] == "and 4 more"


def test_a_key_of_any_text_is_shown_in_one_short_line() -> None:
    told = refusal(f'"{"k" * 9000}\\n" = 1')
    assert "\n" not in told
    assert len(told) < 600


def test_windows_line_ends_change_nothing() -> None:
    assert parse_policy(IGNORE.replace("\n", "\r\n")) == parse_policy(IGNORE)
    assert refusal('stale = "warn"\r\nstael = 1').startswith("knowngood.toml:2: ")


def test_in_a_pyproject_the_policy_is_the_projects_own_table() -> None:
    text = '[project]\nname = "x"\n[tool.knowngood]\nunknown = "warn"\n[[tool.knowngood.ignore]]\n'
    text += IGNORE.partition("\n")[2]
    policy = parse_policy(text, "some/pyproject.toml")
    assert (policy.unknown, len(policy.ignores)) == (Effect.WARN, 1)
    told = refusal(text.replace("unknown", "unknwon"), "some/pyproject.toml")
    assert told.startswith('some/pyproject.toml:4: unknown key "unknwon"')


@pytest.mark.parametrize("text", ["", "[tool]\nruff = 1", 'tool = "x"', "[tool]\nknowngood = 3", "[tool.other]"])
def test_a_pyproject_without_the_table_has_no_policy(text: str) -> None:
    assert "has no table [tool.knowngood]" in refusal(text, "pyproject.toml")


def test_a_date_of_json_means_what_a_date_of_toml_means() -> None:
    assert policy_of(PolicyFile.model_validate(as_json(IGNORE))) == parse_policy(IGNORE)


# The schema and the example


SCHEMA = json.loads(policy_schema())


def test_the_published_schema_is_what_the_code_makes() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == policy_schema(), "run: python -m knowngood.gate.policy_file"


def test_the_schema_is_a_schema_and_describes_every_rule_but_those_that_their_table_describes() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    bare = {key for key, value in SCHEMA["properties"].items() if "description" not in value}
    assert bare == {"watch", "ignore"}


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("", True),
        (IGNORE, True),
        ('unknown = "maybe"', False),
        ('unknwon = "pass"', False),
        ("release_days = 0", False),
        ('[watch]\nseverity = "bad"', False),
        (IGNORE.replace('author = "ann"\n', ""), False),
        ('[applied]\nx = "y"', False),
        ('base = ""', False),
    ],
)
def test_the_schema_and_the_reader_agree(text: str, is_valid: bool) -> None:
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(as_json(text)) is is_valid
    if is_valid:
        parse_policy(text)
    else:
        refusal(text)


def test_the_example_of_the_docs_is_a_policy_and_satisfies_the_schema() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    policy = parse_policy(text, EXAMPLE.name)
    assert policy.only_new
    jsonschema.validate(as_json(text), SCHEMA)
    assert (EXAMPLE.parent / text.partition("\n")[0].removeprefix("#:schema ")).resolve() == PUBLISHED.resolve()


def test_what_the_example_says_to_be_a_default_is_one() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    written, usual = parse_policy(text), Policy()
    other = {"watch", "hardware", "platform", "minimum", "snapshot_days", "only_new", "base", "applied", "ignores"}
    assert {one.name for one in fields(Policy) if getattr(written, one.name) != getattr(usual, one.name)} == other


def test_the_example_names_issues_and_workarounds_that_are_shipped() -> None:
    policy = parse_policy(EXAMPLE.read_text(encoding="utf-8"))
    repros = shipped_catalogue()
    for issue, workarounds in policy.applied.items():
        text = (repros / issue / "issue.toml").read_text(encoding="utf-8")
        assert {one["id"] for one in tomllib.loads(text)["workaround"]} >= set(workarounds)
    assert all((repros / ignore.issue / "issue.toml").is_file() for ignore in policy.ignores)


# Anything at all


pieces = "watch issues unknown [ ] [[ ]] ignore = \" ' 1 x pass { } . , expires 2027-01-01 # \\u0000 true applied é low"
words = st.sampled_from([*pieces.split(), "\n", "\r\n"])


@given(
    st.one_of(st.lists(words, max_size=40).map(" ".join), st.text(max_size=200)),
    st.sampled_from(["a.toml", "pyproject.toml"]),
)
def test_any_text_is_a_policy_or_is_refused_with_the_name_of_its_file(text: str, where: str) -> None:
    try:
        found: Policy | BadPolicy = parse_policy(text, where)
    except BadPolicy as error:
        found = error
    assert isinstance(found, Policy) or str(found).startswith(f"{where}:")


values = st.recursive(
    st.one_of(
        st.booleans(), st.integers(), st.sampled_from([*Effect, "", "x", "cpu-x86_64"]), st.dates().map(date.isoformat)
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_lowercase, max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from([*PolicyFile.model_fields, "other"]), values, max_size=5)


@given(documents)
def test_whatever_the_reader_takes_the_schema_takes_too(document: dict[str, Any]) -> None:
    try:
        PolicyFile.model_validate(document)
    except ValueError:
        return
    jsonschema.validate(document, SCHEMA)
