"""Messages: a rule gives a key and its values, which become words where somebody reads them.

`SENTENCES` has the English of every key, and the pages' catalogue the Chinese of that. Rules compare messages by key
and values; nothing reads words that we wrote.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn

from knowngood.domain.vocabulary import ANSWERS, VERDICTS, WORKAROUNDS


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of somebody else, which stay as they are: a line of a log, an exception, a person's own reason."""

    text: str


_NOTHING = "nothing"


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """One sentence or clause. A tuple among its values is a list: of names, or of clauses."""

    key: str
    values: Mapping[str, "Value"]

    def __init__(self, key: str, /, **values: "Value") -> None:
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "values", values)

    def __hash__(self) -> int:
        return hash((self.key, *self.values.values()))

    def __bool__(self) -> bool:
        return self.key != _NOTHING

    def __str__(self) -> NoReturn:
        raise TypeError(f"{self.key} is no text yet: put it in words (`english`)")


Value = str | int | Quoted | Message | tuple[str, ...] | tuple[Message | Quoted, ...]
"""A name or a number, words of somebody else, another message, or several of one kind."""


NOTHING = Message(_NOTHING)
"""Nothing to say, where an answer has a place for it."""


def quoted(text: str) -> Message:
    """A message that quotes a whole sentence of somebody else."""
    return Message("quoted", text=Quoted(text))


def clauses(parts: Iterable[Message]) -> Message:
    """Join several clauses to one message; a single clause stays itself."""
    messages = tuple(parts)
    return messages[0] if len(messages) == 1 else Message("clauses", clauses=messages)


def aside(message: Message, *beside: Iterable[Message]) -> Message:
    """A message with others in brackets, if there are any."""
    asides = tuple(chain(*beside))
    return Message("aside", said=message, aside=asides) if asides else message


def joined(key: str, parts: Iterable[Message]) -> Message:
    """Join several clauses by a message of two, `first` and `rest`; a single clause stays itself."""
    first, *rest = parts
    return Message(key, first=first, rest=joined(key, rest)) if rest else first


def either(names: Sequence[str]) -> Message:
    """One of these names."""
    first, last = tuple(names[:-1]), names[-1]
    return Message("either", names=first, last=last) if first else Message("names", names=(last,))


# A template names the values that fill its places; `(s)` is the plural of `n`. It is also the key of its Chinese.
SENTENCES: Mapping[str, str] = {
    # Lists and clauses of any kind.
    _NOTHING: "",
    "quoted": "{text}",
    "names": "{names}",
    "and_more": "{names} and {n} more",
    "in_a_row": "{names} and {last}",
    "either": "{names} or {last}",
    "clauses": "{clauses}",
    "then": "{first}, {rest}",
    "both": "{first} and {rest}",
    "beside": "{first} · {rest}",
    "aside": "{said} ({aside})",
    # Reasons of one attempt.
    "cancelled": "cancelled before it ended",
    "not_started": "the process could not be started",
    "torch_not_imported": "torch could not be imported: {text}",
    "torch_not_reached": "torch could not be imported: the process ended first ({ending})",
    "wrong_build": "not the build asked for: {said}",
    "wrong_version": "{name} {found} was imported where {wanted} was asked for",
    "wrong_revision": "torch of git revision {found} was imported where {wanted} was asked for",
    "wrong_python": "Python {found} ran where {wanted} was asked for",
    "off_the_gpu": "no CUDA tensor was seen to enter {names}: what ran on the CPU says nothing of this GPU",
    "arm_off_the_gpu": "no CUDA tensor was seen to enter the {variant}: what ran on the CPU says nothing of this GPU",
    "observed_nothing": "returned without saying what it observed, which proves nothing",
    "proved_nothing": "returned, but {said}",
    "not_exercised": "nothing shows that it exercised {names}",
    "seen": "seen: {names}",
    "frame_seen": "{name} by {backend} ran {n} times with {objects} objects and {kernels} kernels",
    "unnamed_backend": "no backend",
    "not_compiled": "nothing shows that {names} ran compiled",
    "not_compilable": "nothing shows that {names} ran compiled; compiling it failed",
    "went_on_without": "compiling {names} failed, and something went on without",
    "raised_compiled": "{names}, compiled, raised, and something went on without",
    "passed_proven": "passed; path proven ({proof})",
    "proof_by": "{proof}; by {names}",
    "over_memory": "used more memory than this worker allows an arm",
    "over_processes": "started more processes than this worker allows an arm",
    "over_disk": "wrote more to disk than this worker allows an arm, or than its disk had left",
    "killed": "killed from outside (SIGKILL), most likely by the kernel for want of memory",
    "out_of_memory": "out of memory: {text}",
    "disk_full": "disk full: {text}; free space and run again",
    "searched_too_long": "failed, and looking for the issue's signature in what it wrote took too long; "
    "`knowngood reclassify` tries anew",
    "matched": "ended with the issue's own signature",
    "did_not_end": "did not end within {seconds} s",
    "control_was_slow": "did not end within {seconds} s, but the control took {n} s itself",
    "died": "died by {signal} without the issue's signature",
    "exited_early": "exited by itself with 0 before the arm returned, which proves nothing",
    "exited": "exited by itself with {n}",
    "ended_without_word": "ended without a word of how",
    "package_missing": "package {name} is not in the environment; name it under [packages] of the issue",
    "failed_otherwise": "failed otherwise: {text}",
    "no_longer_an_arm": "{name} is no longer an arm of this issue; not judged",
    "without_its_log": "{said} (judged without its log, which is not kept any more)",
    "nothing_to_differ_from": "ran, but nothing stands beside its values: the control was not run with {variant}",
    "values_differ": "ran, but its values differ from the control's: {values}",
    "more_values_differ": "ran, but its values differ from the control's: {values} (and {n} more)",
    "value_differs": "{name} is {value}, the control's {control}",
    "value_missing": "{name} is not reported, the control's {control}",
    # Reasons of a cell, and the sentence of its page.
    "not_run": "not run yet",
    "not_covered": "passes as reported; not covered: {quote}; {said}",
    "results_voided": "{n} attempt(s) of a worker whose results were voided",
    "voided": "voided by {name}: {reason}",
    "unreadable": "what was derived for this cell cannot be read; `knowngood reclassify` derives it anew",
    "control_not_run": "control not run: without it neither a failure nor a pass says anything",
    "control_failed": "control failed: {said}",
    "control_gave_no_answer": "control gave no answer: {said}",
    "all_matched": "{k} of {n} attempt(s) ended with the issue's own signature",
    "some_matched": "{k} of {n} attempt(s) ended with the issue's own signature; {m} ended otherwise: {said}",
    "some_passed": "{k} of {n} attempt(s) ended with the issue's own signature, others passed",
    "all_passed": "{n} of {n} attempt(s) {said}",
    "passed_and_failed": "passed and failed: {said}",
    "varies_by_machine": "varies by machine: {said}",
    "passes_needed": "{n} passes needed: fails in {k} of {m} runs on {version}; {runs} run",
    "one_run": "one run; this issue is flaky: {n} more would say",
    "missing_variants": "not measured with {names} yet",
    "with_every_variant": "with every variant ({n}): {said}",
    "with": "with {names}: {said}",
    "on": "on {names}: {said}",
    "as_reported": "{said}; as reported ({variant}) it {clause}",
    "by_python": "inferred from {ground} (these Pythons agreed in {n} of {m} cells): {said}",
    "by_device": "inferred from {ground} (independent of the device; agreed in {n} of {m} cells): {said}",
    "by_variant": "inferred from {ground}, another variant: {said}",
    "ground_of_python": "{ground} (these Pythons agreed in {n} of {m} cells)",
    "ground_of_device": "{ground} (independent of the device; agreed in {n} of {m} cells)",
    "nothing_measured": "nothing was measured here yet",
    "build_not_tested": "the build is not tested",
    "concerns_package": "concerns who has {name}, and {said}",
    "environment_lacks_it": "the environment does not",
    "packages_unknown": "nothing is known of the environment's packages",
    "package_not_asked_for": "the project does not ask for it by itself; "
    "whether its dependencies bring it is not known",
    "two_inferences": "not run: would rest on more than one inference",
    "pythons_differ": "fails on Python {names} and passes on Python {others}",
    "other_torch": "applies to torch {versions}; this is {found}",
    "other_python": "applies to Python {versions}; this is {found}",
    "no_isa_of_its_own": "has no answer of its own with {name}: see {hardware}",
    "cpu_path": "concerns the CPU path: see cpu-x86_64",
    "needs_cuda": "needs CUDA, and this build has none",
    "needs_gpu": "needs a CUDA GPU; {hardware} has none (measure it on a GPU worker)",
    "needs_capability": "needs compute capability {version} or newer; {hardware} is older",
    "isa_does": "{name} {clause}",
    "isas_differ": "{said} on {names}",
    "isas_agree": "{isas} say the same on {names}",
    "on_build": "{lead} {build} ({hardware}): {said}.",
    "it_on_build": "on {build} ({hardware}) it {said}.",
    "control_passed": "control passed",
    "path_seen": "path seen ({proof})",
    # Notes of a workaround on a cell.
    "rest_not_covered": "the rest of the issue is not covered",
    "inferred_from": "inferred from {ground}",
    "cell_voided": "the cell is voided",
    "does_not_apply": "does not apply to this build: {said}",
    "for_other_torch": "this workaround is for torch {versions}",
    "helps_with": "helps with {names}",
    "fails_with": "fails with {names}",
    "no_answer_with": "no answer with {said}",
    "not_tried_with": "not tried with {names}",
    "left_out_with": "not tried with {names} ({why})",
    "not_every_time": "not every time: {said}",
    "breaks_what_passes": "the baseline passes, with it: {said}",
    "becomes_silent": "a loud failure becomes silent wrong numbers",
    "becomes_loud": "makes it loud: {said}",
    **{f"baseline_{verdict}": f"the baseline here is {verdict}" for verdict in VERDICTS},
    # Where an issue came and went, and for which GPUs a wheel holds code.
    "releases": "{names} {clause}",
    "fails_since": "fails since {interval}",
    "fails_on": "fails on {names}",
    "fails_up_to": "fails up to {last}",
    "fails_in": "fails in {first}",
    "fails_in_many": "fails in {first} to {last}",
    "fixed_in": "fixed in {interval}",
    "older_unknown": "older not known",
    "newer_unknown": "newer than {release} not known",
    "later_not_run": "{n} later not run",
    "inside_not_run": "{n} inside not run",
    "passes_on_all_measured": "passes on all {n} measured",
    "passes_on_all_answered": "passes on all {n} with an answer",
    "passes_on_one_measured": "passes on {release}, the one measured",
    "passes_on_one_answered": "passes on {release}, the one with an answer",
    "fails_on_all_measured": "fails on all {n} measured",
    "fails_on_all_answered": "fails on all {n} with an answer",
    "fails_on_one_measured": "fails on {release}, the one measured",
    "fails_on_one_answered": "fails on {release}, the one with an answer",
    "pythons_disagree": "Pythons disagree on {n} release(s)",
    "fails_differently": "fails differently on {n} release(s)",
    "no_answer_yet": "no release answered yet",
    "as_on": "as on {hardware}: {said}",
    "on_class": "{hardware}: {said}",
    "on_class_whole": "{hardware}: {said}.",
    "workaround_helps": "{n} workaround helps",
    "workarounds_help": "{n} workarounds help",
    "several_gpus": "several kinds of GPU are named ({gpus}), and the worst counts",
    "no_triton": "torch brings no Triton for Windows: install triton-windows, run in WSL2, or compile with "
    'backend="aot_eager" (nothing is measured on Windows)',
    "code_unknown": "not known whether this wheel has code for {gpu}",
    "no_code": "this wheel holds no code for {gpu}",
    "code_since": "the first tested build that does is {found}",
    "code_until": "the newest tested build that does is {found}",
    "code_nowhere": "no tested build is known to",
    # What upstream says, held against what was measured.
    "cured": "cured {names}",
    "cured_partly": "helped with some variants on {names}",
    "cured_not": "did not cure {names}",
    "and_not": "not {names}",
    "and_also": "{first}, and {rest}",
    "passes_here": "{names} passes here",
    "pass_here": "{names} pass here",
    "fails_here": "{names} fails here",
    "fail_here": "{names} fail here",
    "not_measured_here": "not measured here",
    "rest_not_measured": "the rest was not measured",
    "later_it": "but later it {said}",
    "upstream_affected": "but upstream says that {names} is affected ({source}; {seen})",
    "upstream_all_affected": "but upstream says that {names} are affected ({source}; {seen})",
    "upstream_fixed": "but upstream says that {names} is fixed ({source}; {seen})",
    "upstream_all_fixed": "but upstream says that {names} are fixed ({source}; {seen})",
    "state_open": "open",
    "state_closed": "closed",
    "upstream_and_here": "{state} upstream; here it {said}",
    "upstream_seen_and_here": "{state} upstream, seen on {day}; here it {said}",
    "claim_but": '"{quote}" but {said}',
    "claim_and": '"{quote}" {said}',
    "not_needed_from": "not needed from {release} on",
    "not_needed": "{first}, {said}: {names}",
    "cures_nowhere": "{name} cures no build that was measured: {names}",
    "decoy_helps": "{name} is marked as a decoy, and helps on {names}",
    "never_failed": "passes on {names}: nothing shows that its repro can fail",
    # What was made of an environment.
    "taken_as_linux": "taken as Linux x86-64",
    "python_not_stated": "Python is not stated; of those that it may be the catalogue has this build for {found} alone",
    "pythons_open": "Python is not stated: it may be {found} or {last}",
    "default_variant": '"{build}" names no CUDA variant; taken as that of the default index, {found}',
    "only_variant": '"{build}" names no CUDA variant; taken as the only one in the catalogue, {found}',
    # Why a build is no candidate, what was assumed, and what becomes of workarounds.
    "where_you_are": "where you are: {said}",
    "not_watched": "issues of these packages are not watched, because {said}: {packages}",
    "packages_not_known": "the packages beside torch are not known: give the environment, say which it has, or name "
    "the issues",
    "packages_lacking": "the environment does not have them",
    "packages_not_asked_for": "the project does not ask for them by itself; whether its dependencies bring them is "
    "not known",
    "other_python_listed": "is listed for Python {found} and not for {wanted}",
    "no_companion": "has no {package} that is built for it (PyPI, asked {asked})",
    "other_triton": "has Triton {found} in place of its own {wanted}; pin Triton to want that",
    "driver_unknown": "is built for CUDA {found}, and which driver runs that is not on file here",
    "driver_too_old": "is built for CUDA {found}, which needs driver {wanted} or newer, and {driver} is there",
    "holds_no_code": "holds no code for {gpu}",
    "has_other": "has {found}, and {wanted} is wanted",
    "no_cuda": "has no CUDA, and {hardware} has; name a CPU class to want that",
    "because": "{first}: {said}",
    "harmful_there": "does harm there",
    "stopped_there": "helps now, and does not there",
    # What turned.
    "issue": "{issue}: {said}",
    "issues": "{n} issues: {said}",
    "on_cells": "{said} on {n} cell(s)",
    "first_measured": "measured for the first time: {said}",
    "workarounds": "{n} workaround(s)",
    "more_workarounds": "{n} more workaround(s)",
    "workarounds_open": "workarounds to be verified anew",
    "workaround_is": "workaround {name} {clause}",
    "no_longer_needed": "workaround {name} is no longer needed",
    "stopped_working": "workaround {name} stopped working ({verdict})",
    "now_works": "workaround {name} works now",
    "now_helps_in_part": "workaround {name} helps in part now",
    # The vocabulary's words as parts of a sentence.
    **{f"workaround_{verdict}": term.as_clause for verdict, term in WORKAROUNDS.items()},
    **{f"it_{verdict}": term.as_clause for verdict, term in VERDICTS.items()},
    **{f"lead_{verdict}": f"{term.word} {term.preposition}" for verdict, term in VERDICTS.items()},
    **{f"release_{answer}": term.word for answer, term in ANSWERS.items()},
    **{f"releases_{answer}": term.as_plural for answer, term in ANSWERS.items()},
}


@dataclass(frozen=True)
class Writer:
    """Writes messages in one language: `template` writes a template in it, `name` a name or a number, and `quote`
    somebody else's words; a list of names stands between `comma`s, one of clauses between `semicolon`s.
    """

    template: Callable[[str], str]
    name: Callable[[str], str]
    quote: Callable[[str], str]
    comma: str
    semicolon: str

    def write(self, message: Message) -> str:
        values, words = message.values, self.template(SENTENCES[message.key])
        if "(s)" in words:
            words = words.replace("(s)", "" if values["n"] == 1 else "s")
        return words.format_map({name: self._fill(value) for name, value in values.items()}) if values else words

    def _fill(self, value: Value) -> str:
        match value:
            case Message():
                return self.write(value)
            case Quoted():
                return self.quote(value.text)
            case tuple():
                between = self.comma if value and isinstance(value[0], str) else self.semicolon
                return between.join(map(self._fill, value))
            case _:
                return self.name(str(value))


_ENGLISH = Writer(template=str, name=str, quote=str, comma=", ", semicolon="; ")


def english(message: Message | None) -> str:
    """The message in English; empty where there is no message."""
    return _ENGLISH.write(message) if message else ""


def sentence(message: Message) -> str:
    """The same as a sentence begins: with a capital, unless that is a hardware class."""
    words = english(message)
    return words if message.key == "on_class" else words[:1].upper() + words[1:]
