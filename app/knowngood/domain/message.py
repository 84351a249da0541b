"""Messages: a rule gives a key and its values, which become words where somebody reads them.

`SENTENCES` has the English of every key, and the pages' catalogue the Chinese of that. Rules compare messages by key
and values; nothing reads words that we wrote.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NoReturn

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.identity_key import IdentityKey
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
    # Files of an environment that cannot be read.
    "in_file": "{name}: {said}",
    "in_file_line": "{name}, line {line}: {said}",
    "file_markers": "is beyond the different markers that are read; state the Python, or give pip freeze",
    "file_no_such_group": 'no extra or group is called "{name}"; the file has {names}',
    "file_no_groups": 'no extra or group is called "{name}"; the file has no extras and no groups',
    "file_groupless": "has no groups to be named ({name}); {names} have them",
    "file_group_cycle": 'the group "{name}" includes itself, or others {most} deep',
    "file_bytes": "has {n} bytes; lock files of at most {most} are read",
    "file_long": "has {n} characters; such a file is read up to {most}",
    "file_long_line": "has {n} characters; lines of at most {most} are read",
    "file_items": "{name} has {n} items; at most {most} are read",
    "file_packages": "has more than {most} packages, which is all that is read",
    "file_beyond": "is beyond the {most} packages that are read",
    "file_characters": "is beyond the {most} characters that are read, hashes and comments apart",
    "file_long_key": "has a key of more than {most} parts; this is no lock file",
    "file_nested": "has more than {most} tables and parts of keys; this is no lock file",
    "file_deep": "is nested too deep to be a lock file; write it anew with its tool",
    "file_utf16": "is UTF-16, which is what PowerShell's > writes; save it as UTF-8",
    "file_no_utf8": "byte {found} is no UTF-8; save the file as UTF-8",
    "file_nul": "holds a NUL byte; this is no text file",
    "file_empty": "is empty; give the output of pip freeze, or a lock file",
    "file_is_not": "is not {name}: {said}. Write it anew with its tool",
    "file_unreadable": "is not {name} that can be read: {said}",
    "file_twice": 'key "{name}" is a duplicate in one object; write the file anew with its tool',
    "file_duplicate": '"{name}" is a duplicate key; leave one of them out',
    "file_type": "{name} is {found}; expected {wanted}. Write it anew with its tool",
    "type_text": "text",
    "type_truth": "true or false",
    "type_number": "a number",
    "type_list": "a list",
    "type_table": "a table",
    "type_null": "null",
    "type_date": "a date",
    "file_no_texts": "{name} is no list of texts; write the file anew with its tool",
    "file_no_name": 'name "{name}" is no name of a package; write the file anew with its tool',
    "file_no_version": 'version "{name}" is no version; write the file anew with its tool',
    "file_no_requirement": '"{name}" is no requirement ({said}); expected NAME==VERSION, as pip freeze writes it',
    "file_no_marker": '"{name}" is no marker ({said}); write the file anew with its tool',
    "file_no_wish": '{name} is no requirement; expected a text such as "torch==2.6.0"',
    "file_no_list": '{name} is no list; expected requirements such as ["torch==2.6.0"]',
    "file_row": '"{name}" has no version; expected NAME VERSION, as pip list prints it',
    "file_no_address": '"{name}" has no address; write it behind the option',
    "file_no_option": '"{name}" is no option of a requirements file; leave it out',
    "file_includes": 'includes "{name}", which is not here; give one list with everything in it (pip freeze, or '
    "uv pip compile)",
    "file_no_package": '"{name}" is no package of conda; expected {wanted}',
    "file_no_mapping": "is no mapping; an environment.yml has name, channels and dependencies",
    "file_no_dependencies": "has no list of dependencies; an environment.yml names its packages there",
    "file_no_scalar": "is a list or a mapping where a text is expected, such as pytorch=2.5.1",
    "file_no_project": "has neither [project] nor [dependency-groups] nor [tool.poetry]; give a lock file, or pip "
    "freeze",
    "file_dynamic": "leaves its dependencies to the build (dynamic); give its lock file, or pip freeze",
    "file_no_index": '{package} comes from "{name}", which is no index of this file',
    "file_script": "is a script that states no dependencies; begin a comment with `{name}` (PEP 723), or give pip "
    "freeze",
    "file_open_script": "`{name}` is never closed; end the comment with `{wanted}`",
    "file_second_script": "is a second `{name}`; a script has one (PEP 723)",
    "file_uv_version": "has no version; a uv.lock starts with one. Write it anew with uv lock",
    "file_lock_version": "{said}; lock-version 1.0 is read",
    "file_pipfile": 'is a JSON object without "_meta"; a Pipfile.lock or the list of pip list is read',
    "file_wishes": "states what a project asks for, not what is installed; give {wanted}",
    "file_conda_lock": "is not read; give conda-lock render --kind explicit, or conda list --explicit",
    "file_no_lock": "is no lock file that is read (uv.lock, pylock.toml, poetry.lock, pdm.lock, Pipfile.lock), and no "
    "pyproject.toml",
    "file_no_python": 'Python "{name}" is none that torch has wheels for',
    "file_other_python": "is for {name}, and Python {wanted} was stated",
    "build_of_other_python": '"{name}" is for Python {found}, and Python {wanted} was stated; leave one of them out, '
    "or name the build of that Python ({build})",
    "text_memory": "the text takes more than {n} MB of memory to be read; give a shorter one",
    "text_result": "the text says more than {n} MB once it is read; give a shorter one",
    "text_processor": "the text takes more than {n} s of a processor to be read; give a shorter one",
    "text_unread": "the text could not be read: its reader was ended; give a shorter one",
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
    "`knowngood reclassify` tries again",
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
    "nothing_to_differ_from": (
        "ran, but there is nothing to compare its values with: the control was not run with {variant}"
    ),
    "values_differ": "ran, but its values differ from the control's: {values}",
    "more_values_differ": "ran, but its values differ from the control's: {values} (and {n} more)",
    "value_differs": "{name} is {value}, the control's {control}",
    "value_missing": "{name} is not reported, the control's {control}",
    # Reasons of a cell, and the sentence of its page.
    "not_run": "not run yet",
    "not_covered": "passes as reported; not covered: {quote}; {said}",
    "results_voided": "{n} attempt(s) of a worker whose results were voided",
    "voided": "voided by {name}: {reason}",
    "unreadable": "what was derived for this cell cannot be read; `knowngood reclassify` derives it again",
    "control_not_run": "control not run: without it neither a failure nor a pass says anything",
    "control_failed": "control failed: {said}",
    "control_gave_no_answer": "control gave no answer: {said}",
    "all_matched": "{k} of {n} attempt(s) ended with the issue's own signature",
    "some_matched": "{k} of {n} attempt(s) ended with the issue's own signature; {m} ended otherwise: {said}",
    "some_passed": "{k} of {n} attempt(s) ended with the issue's own signature, others passed",
    "all_passed": "{n} of {n} attempt(s) {said}",
    "is_bigger": "took {value} ({name}), where {control} are enough",
    "is_more_work": "counted {value} {name}, where {control} are enough",
    "timed": "its time was compared with the baseline's",
    "time_costs": "costs {percent} % of time ({low} to {high}; {said})",
    "time_saves": "saves {percent} % of time ({low} to {high}; {said})",
    "time_no_difference": "takes the same time within 5 % ({said})",
    "time_cannot_say": "the measured times leave open whether it costs any ({said})",
    "timed_on": "{n} pairs of {of}, torch {torch}, {on}, {day}",
    "timed_calls": "calls of compiled code",
    "timed_whole": "runs of the whole repro",
    "slower_costs": "takes {percent} % longer ({low} to {high}; {said})",
    "slower_saves": "takes {percent} % less time ({low} to {high}; {said})",
    "slower_no_difference": "takes as long as the control ({low} to {high} % longer; {said})",
    "slower_cannot_say": "the times leave open whether it takes longer ({low} to {high} %; {said})",
    "unquiet_cannot_say": "the machine was not quiet: the control differed from itself ({low} to {high} %; {said})",
    "pairs": "{n} pairs",
    "time_comes_and_goes": "comes and goes: {said}",
    "took_more": "{n} of {n} attempt(s) {said}",
    "has_to_agree": "one attempt {said}; a second one has to agree",
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
    "by_device_and_python": "inferred from {ground} with another Python (independent of the device; agreed in {n} of "
    "{m} cells): {said}",
    "ground_of_device_and_python": "{ground} with another Python (independent of the device; agreed in {n} of {m} "
    "cells)",
    "ground_of_python": "{ground} (these Pythons agreed in {n} of {m} cells)",
    "ground_of_device": "{ground} (independent of the device; agreed in {n} of {m} cells)",
    "nothing_measured": "nothing was measured here yet",
    "build_not_tested": "the build is not tested",
    "concerns_package": "concerns only environments with {name}, and {said}",
    "environment_lacks_it": "the environment does not",
    "packages_unknown": "nothing is known of the environment's packages",
    "package_not_asked_for": "the project does not ask for it by itself; "
    "whether its dependencies bring it is not known",
    "two_inferences": "not run: would rest on more than one inference",
    "pythons_differ": "fails on Python {names} and passes on Python {others}",
    "other_torch": "applies to torch {versions}; this is {found}",
    "other_python": "applies to Python {versions}; this is {found}",
    "no_isa_of_its_own": "has no answer of its own with {name}: see {hardware}",
    "cpu_path": "concerns the CPU path: see the CPU",
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
    "fails_since": "{does} since {by}",
    "broke_between": "broke after {after}, by {by}",
    "fails_on": "fails on {names}",
    "fails_up_to": "{does} up to {last}",
    "fails_in": "{does} in {first}",
    "fails_in_many": "{does} in {first} to {last}",
    "fixed_in": "fixed in {release}",
    "fixed_between": "fixed after {after}, by {by}",
    "older_unknown": "older not known",
    "newer_unknown": "newer than {release} not known",
    "later_not_run": "{n} later not run",
    "inside_not_run": "{n} inside not run",
    "passes_on_all_measured": "passes on all {n} measured",
    "passes_on_all_answered": "passes on all {n} with an answer",
    "passes_on_one_measured": "passes on {release}, the one measured",
    "passes_on_one_answered": "passes on {release}, the one with an answer",
    "fails_on_all_measured": "{does} on all {n} measured",
    "fails_on_all_answered": "{does} on all {n} with an answer",
    "fails_on_one_measured": "{does} on {release}, the one measured",
    "fails_on_one_answered": "{does} on {release}, the one with an answer",
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
    # Wheels of the public index.
    "wheel_there": "{name} has a wheel for {where}",
    "wheels_there": "{name} has wheels",
    "wheel_not_there": "{name} has no wheel for {where}",
    "wheel_first": "{found} is the first release that has one",
    "wheel_last": "{found} is the last release that has one",
    "wheel_of_none": "no release since {first} has one",
    "wheel_too_old": "the table of wheels begins with {name} {first}",
    "wheel_local": "{name} is of PyTorch's own index, whose wheels are not known here",
    "wheel_claimed": "{name} is on PyTorch's own index, by a claim: that index was not read here",
    "wheel_unclaimed": "no source that was read lists such a wheel of {name}",
    "variants_claimed": "On PyTorch's own index {name} has {variants}, by a claim",
    "backend_elsewhere": "wheels for {backend} are on PyTorch's own index, by a claim: nobody read which GPUs they "
    "have code for",
    "wheel_elsewhere": "no wheels of {name} are known here; they are on {page}, by a claim",
    "claimed_beside": "Sources name wheels of {name} for torch {releases}; of other releases nothing was read",
    "claims_alone": "A claim was not read in a wheel; that there is one for this Python is a claim too",
    "wheel_no_package": "{name} is none of the packages whose wheels are known here; nearest: {names}",
    "wheel_no_release": "the index has no {name}; its releases go from {first} to {last}",
    "wheel_does_not_run": "{name} {said}",
    "runs_from_to": "of the wheels that were read, torch {first} to {last} will do",
    "runs_alone": "of the wheels that were read, torch {first} alone will do",
    "needs_driver": "CUDA {found}, driver {wanted} or newer",
    "by_cuda_alone": "Drivers are those that this CUDA needs; a card may need a newer one",
    "wheel_of_cuda": "is built for CUDA {found} on the public index",
    "cuda_unread": "asks for a CUDA that is not known here",
    "code_unread": "was not installed here, so that nobody read which GPUs it has code for",
    "code_of_torch_alone": "which GPUs a wheel runs on is known of torch on Linux x86-64 alone",
    "runs_since": "{found} is the first release that will do",
    "runs_until": "{found} is the newest release that will do",
    "runs_nowhere": "no release that was read will do",
    "releases_need": "{names}: {said}",
    "wheel_runs": "{names} will do: {said}",
    "releases_index_holds_no_code": "These hold no code for it: {names}",
    "has_code": "the wheel has code for it",
    "driver_runs": "runs CUDA {found}",
    "goes_with_torch": "goes with torch {torch}",
    "releases_code_unread": "Not read: {names}",
    "no_wheel": "{said}",
    "pair_refused": "{name} {said}",
    "beside_torch": "{wanted}, and torch is {torch}",
    "asks_for": "asks for torch{specifier}",
    "holds_torch": "{name} asks for torch{specifier}",
    "resolves_to_newest": "for {where} uv takes torch {torch} with these packages, the newest there is",
    "resolves_to_older": "for {where} uv takes torch {torch} with these packages, not {newest}, without saying "
    "why: {said}",
    "resolves_to_nothing": "for {where} these packages cannot be installed together with any torch: {said}",
    "cap_idle": "no release of {name} is above it; the newest is {found}",
    "cap_other": "torch and Triton are measured here, and not what is built on them; {name} asks for torch{specifier}",
    "cap_holds": "it holds torch back: {name}, the newest that it allows, asks for torch{specifier}",
    "cap_unknown": "nothing is known here of {name}",
    "cap_conda": "conda's builds are not those that were measured",
    "cap_marker": "it holds where {marker}; what is measured is Linux x86-64 with Python 3.11",
    "cap_lacking": "the catalogue has no issue for {names}, which the reason names",
    "cap_no_row": "no issue here is about the reason that is given",
    "cap_row_fails": "{issue} fails on {names}",
    "cap_row_passes": "it passes on {names}",
    "cap_row_unknown": "whether {issue} fails on {names} was not measured",
    "cap_nothing": "nothing is measured of {name}",
    "cap_too_new": "{name} came out {days} days ago, and {n} issue(s) were reported since: too new to judge",
    "cap_together": "{name} asks for torch{specifier}; the two move together",
    "cap_paired": "each wheel of {name} is made for one torch; whether there is one for {found} is not known",
    "cap_hardly": "too little is measured: {n} issue(s) have no answer on {found}, {m} on {base}",
    "cap_may_lose": "{n} issue(s) fail on {found} and may have passed on {base}, with no workaround that is known to "
    "work there",
    "cap_loses": "{names}: passes on {base} and fails on {found}, and no workaround helps",
    "cap_removable": "of {m} issues on {classes}, {n} may newly fail on {found} after {base}, each with a workaround "
    "that works there",
    "cap_none_fails": "of {m} issues on {classes}, none newly fails on {found} after {base}",
    "cap_dependency": "a dependency, not you: it keeps your lock on torch {torch} ({newest} is out); drop {name}, "
    "override what it asks, or stay",
    "cap_dependency_moves": "a dependency, not you: it keeps your lock on torch {torch}; {name} takes {newest}",
    "built_for": "was built for torch {torch}, by its own name",
    "release_allows": "{name} allows it",
    "wheel_yanked": "Its authors withdrew it: {reason}",
    "wheel_cpu": "From the public index Windows gets a CPU build; CUDA for Windows is on PyTorch's own index",
    "code_unknown": "not known whether this wheel has code for {gpu}",
    "this_wheel": "this wheel {said}",
    "driver_until": "the newest tested build that this driver runs is {found}",
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
    "assumed": "assumed: {said}",
    "taken_as_linux": "taken as Linux x86-64",
    "python_not_stated": "Python is not stated; of those it may be, the catalogue has this build only for {found}",
    "torch_of_machine": "which torch runs there: {command}",
    "files_unread": "not read, and what they ask for is not known: {names}",
    "pythons_open": "Python is not stated: it may be {found} or {last}",
    "default_variant": '"{build}" names no CUDA variant; taken as that of the default index, {found}',
    "only_variant": '"{build}" names no CUDA variant; taken as the only one in the catalogue, {found}',
    # Why a build is no candidate, what was assumed, and what becomes of workarounds.
    "where_you_are": "where you are: {said}",
    "not_watched": "not watched: issues of {packages}, because {said}",
    "packages_not_known": "your packages are not known (give the environment, or name them)",
    "packages_lacking": "the environment does not have them",
    "packages_not_asked_for": "the project does not ask for them by itself (whether its dependencies do is not known)",
    "other_python_listed": "is listed for Python {found} and not for {wanted}",
    "no_companion": "has no {package} that is built for it (PyPI, asked {asked})",
    "other_triton": "has Triton {found} in place of its own {wanted}; pin Triton to want that",
    "driver_unknown": "is built for CUDA {found}, and which driver runs that is not known here",
    "driver_too_old": "is built for CUDA {found}, which needs driver {wanted} or newer, and {driver} is there",
    "holds_no_code": "holds no code for {gpu}",
    "index_holds_no_code": "for CUDA {found}, the wheel on the public index, holds no code for {gpu}",
    "has_other": "has {found}, and {wanted} is wanted",
    "no_cuda": "has no CUDA, and {hardware} has; name a CPU class to want that",
    "because": "{first}: {said}",
    "harmful_there": "does harm there",
    "stopped_there": "helps now, and does not there",
    # The build that an environment is: why there is none, and what was assumed.
    "each": "{first} and {rest}",
    "more": "{n} more",
    "line": "line {n}",
    "in_line": " in line {n}",
    "torch_of": "torch {said}",
    "from": "{said} from {place}",
    "from_place": "from {place}",
    "no_version": "of no stated version",
    "conda_channel": "conda's channel {name}",
    "for_python": " for Python {python}",
    "no_torch": "This {kind} has no torch{where}; give the build or an environment with torch",
    "many_torches": "This {kind} holds {n} torches: {each}; state the Python, or the extras and groups that are "
    "installed (--groups), or export the one environment that is used (uv export, pip freeze)",
    "no_exact_torch": "torch is named{where} without an exact version; state torch==VERSION, a lock file, or pip "
    "freeze",
    "no_torch_version": '"{version}" is no version of torch{where} (PEP 440); write torch==2.6.0',
    "built_from_source": "torch is built from source{where} ({origin}); only released wheels are tested",
    "other_platform": "torch{where} is for another platform ({file}); builds are tested on Linux x86_64",
    "from_path": "torch comes from the local path {origin}{where}, and {said}",
    "own_build": "{version} is a vendor's own build, or one that somebody compiled: no other build answers for it",
    "path_is_closed": "what is in it cannot be known; if it is a released wheel, name its build instead "
    "(torch-2.6.0+cu124)",
    "from_no_wheel": "torch comes from {origin}{where}, which is no wheel; only released wheels are tested",
    "wheel_from": "the wheel comes from {host}, not from PyPI or download.pytorch.org",
    "triton_from": "Triton comes from {origin}; only released versions are tested",
    "many_tritons": "This {kind} holds Triton {each}; state the one that is used",
    "no_triton_version": '"{version}" is no version of Triton (PEP 440)',
    "triton_came_with": "inferred: Triton {triton} came with torch {releases}",
    "taken_as_default": "torch {torch} is stated without its CUDA variant{where}; taken as the default index's "
    "{found}, which pip freeze or a lock file pins",
    "other_index": " and {index} may hold other wheels",
    "conda_is_open": "conda's pytorch {torch} leaves open what it is built for; state pytorch-cuda=12.4 or cpuonly, or "
    "give conda list --explicit",
    "conda_is_apart": "conda's package is compiled apart from the wheel {torch}",
    "other_backend": 'torch {version} is listed with "{words}", and torch {torch} is built for {backend}: the '
    "environment does not say which build it is; state torch with its local part (torch==2.6.0+cpu)",
    "other_cuda_of_index": "torch {torch} is listed with {words}, and the index's torch {torch} is built for CUDA "
    "{cuda}: the file does not say which build it is; state torch with its local part (torch==2.6.0+cu124)",
    "other_cuda_of_default": "torch {torch} is listed with {words}, and the default index's torch {torch} is built for "
    "CUDA {cuda}: the file does not say which build it is; state torch with its local part (torch==2.6.0+cu124)",
    "tested_with_cuda": "{words} is listed with torch {torch}, which was tested with CUDA {cuda}",
    "many_indexes": "indexes of {each} are stated, and torch {torch} may come from either",
    "index_of_every_variant": "{index} holds every variant of torch {torch}; state which (torch=={torch}+cu124, say)",
    "not_for_python": "{build} is in the catalogue for {there}, not for {wanted}",
    "build_without_evidence": "{build} is in the catalogue, and no evidence of it is stored here",
    "no_evidence_at_all": "{build} is in the catalogue, and no evidence at all is stored here: `knowngood up` takes in "
    "what is shipped, `knowngood import` any bundle",
    "no_such_variant": "{wanted} is not in the catalogue; the nearest tested build of that release is {build}. Declare "
    "{wanted} in a builds.toml of your own and run it, or let a policy take the other variant's answers as inferred "
    "(accept_variant = true)",
    "no_such_build": "No such build is in the catalogue: {name}",
    "build_for": "{first}, which is a build for {backend}: no other build answers for it",
    "build_of_own": "{first}, which is a vendor's own build, or one that somebody compiled: no other build answers for "
    "it",
    "variant_is_open": "{name} leaves its CUDA variant open, and none of those here is the default index's: {names}",
    "two_platforms": "cannot say: two platforms are stated, {each}",
    "platform_by": '{platform} ("{words}")',
    "nothing_on_platform": "not tested: nothing here is measured on {platform}",
    # The advice on an upgrade: what to do, and why.
    "go": "Go to {build}.",
    "go_with": "Go to {build} with {packages}.",
    "go_for_fixes": "Go to {build} if you need one of its fixes, else wait.",
    "go_with_for_fixes": "Go to {build} with {packages} if you need one of its fixes, else wait.",
    "stay": "Stay on {build}.",
    "cannot_say": "Cannot say yet.",
    "sentences": "{first} {rest}",
    "stop": "{first}. {rest}",
    "measured_there_and_here": "Measured: {there} there, {here} where you are.",
    "measured_of": "{measured} of {applicable}",
    "measured_of_cpu": "{measured} of {applicable}, and {n} from the CPU",
    "measured_of_python": "{measured} of {applicable}, {m} with another Python",
    "measured_of_python_and_cpu": "{measured} of {applicable}, {m} with another Python, and {n} from the CPU",
    "release_of_package": "{torch} with {package} {release}",
    "built_for_one_minor": (
        "According to upstream, each release of {package} is built for one minor release of torch: {pairs}."
    ),
    "moves_with_torch": "With torch {torch} move {packages}.",
    "no_package_for": "There is no {package} for torch {minors} (PyPI for Python {python}, asked {asked}).",
    "no_package_from": "There is no {package} for torch {minors} and newer (PyPI for Python {python}, asked {asked}).",
    # A release over an earlier one.
    "answer_because": "{answer}: {said}",
    "though": "{first}, but {rest}",
    "advice_install": "Install",
    "advice_install_on": "Install for the {names}",
    "advice_wait": "Wait",
    "advice_stay": "Stay",
    "advice_cannot_say": "Cannot say",
    "unless_fixes": "unless you need one of its {n} fixes",
    "unless_fix": "unless you need its fix",
    "it_fixes": "it fixes {n} known issue(s)",
    "fixes_nothing": "it fixes nothing we know of",
    "it_breaks": "it brings {n} new failure(s)",
    "breaks_nothing": "it breaks nothing we know of",
    "breaks_gravely": "it newly gives wrong numbers without an error in {n} severe issue(s), with no workaround known "
    "to work there",
    "packages_lacking_for_it": "no release of your {names} goes with it",
    "age_unknown": "its release date is not recorded",
    "too_young": "at {days} days {minor} is too new to judge",
    "too_few_reports": "it is too new to judge: {n} issue(s) were reported since {minor}.0, and it takes {least}",
    "reported_since": "{n} issue(s) were reported since {minor}.0",
    "too_little_known": "too few issues have an answer on both releases ({clauses})",
    "not_judged": "of other hardware too few issues have an answer on both releases ({clauses})",
    "known_of": "{hardware}: {known} of {of}",
    "pythons_measured": "{names} measured",
    "pythons_unmeasured": "{names} with a wheel, not measured",
    "python_ends": "{name} ends: its last release is {found}",
    "cpu_alone": "none: a wheel for the CPU",
    "cuda_ends": "{name} ends: {found} still has {variant} on PyTorch's own index (claim: {source}; not run here)",
    "code_not_read": "nobody read which GPUs this wheel has code for",
    "code_for": "code for {names} ({architectures}; read in this wheel on {day})",
    "code_ends": "none for {names}, which {found} had",
    "code_begins": "new since {found}: {names}",
    "same_code": "the same cards as {found}",
    "packages_fit": "{names} can be installed with it; nobody has run them together",
    "package_ends": "{name} has no release for it: its newest asks for torch{bound}",
    "package_claimed_none": "{name} has no release for it (claim of {asked})",
    "index_read": "as the index had it on {day}",
    "from_pypi": "From PyPI, without an extra index: `torch=={requirement}` there is {torch}. An index line of "
    "PyTorch's that stands in the file would bring another CUDA variant.",
    "from_index": "The index holds the {origin} wheels; with uv the same is `--torch-backend {origin}`.",
    "of_gained_confirmed": "{confirmed} of {n} gained on two runs or more on both sides",
    "gained_unconfirmed": "{n} gained, none on more than a single run (to confirm: about {minutes} min)",
    "lost_untried": "{n} lost, workaround not verified there",
    "may_be_lost": "fails there, not known before: {n}",
    "gains_nothing": "gains nothing",
    "gains_too_little": "what is gained ({n}) weighs no more than what is lost ({m}), which needs a workaround",
    "here": "where you are",
    "here_unmeasured": "where you are; too little to compare: run {n} (about {minutes} min)",
    "behind_gained": "also good: {n} gained, {m} on {best}",
    "behind_lost": "also good: {n} lost with a workaround, {m} on {best}",
    "behind_fails": "also good: {n} failing without a workaround known to help, {m} on {best}",
    "behind_not_known": "also good: {n} not known, {m} on {best}",
    "behind_needs_workaround": "also good: {n} in need of a workaround, {m} on {best}",
    "behind_nothing": "as good: {best} is preferred as the newer release, or the wheel of the default index",
    "too_new": "{best} gains {n}, but is too new to judge (days since {minor} came out: {days}; issues reported since: "
    "{reported}; upstream was read on {read}).",
    "undated": "{best} gains {n}, but the day of its release is not known, and so not whether it is too new to judge.",
    "loses": "{n} lost without a workaround",
    "loses_silently": "{n} lost without a workaround ({silent} with wrong numbers and no error)",
    "cannot_exist_there": "nothing that you watch can exist there",
    "start_unmeasured": "nothing to compare with: {start} is hardly measured",
    "not_enough": "not enough measured: {n} without an answer",
    "not_enough_run": "not enough measured: {n} without an answer (run {count}: about {minutes} min)",
    "start_does_not_run": "{start} {said}.",
    "no_newer_build": "No newer build is in the catalogue.",
    "all_break_constraints": "Every newer build breaks a constraint ({n}).",
    "nothing_fails": "Nothing that you watch fails on {start}.",
    "nothing_can_exist": "Nothing that you watch can exist on {start}.",
    "gpu_unmeasured": "Nothing was measured on {name}, and no tested wheel is known to hold code for it.",
    "gpu_unmeasured_a": "Nothing was measured on a {name}, and no tested wheel is known to hold code for it.",
    "gpu_unmeasured_an": "Nothing was measured on an {name}, and no tested wheel is known to hold code for it.",
    "gpu_code": "Nothing was measured on {name}; the newest tested wheel that holds code for it is {torch}.",
    "gpu_code_a": "Nothing was measured on a {name}; the newest tested wheel that holds code for it is {torch}.",
    "gpu_code_an": "Nothing was measured on an {name}; the newest tested wheel that holds code for it is {torch}.",
    "find_out": "On {build} without an answer: {n} (about {minutes} min)",
    "find_out_confirm": "To confirm {n} on both sides (about {minutes} min)",
    "find_out_untried": "On {build} workarounds not verified: of {n} (about {minutes} min)",
    "hardly_measured": "On {start}, {measured} of {applicable} issues have an answer: too few to compare.",
    "hardly_measured_cpu": "{start} is hardly measured: {measured} of {applicable} on what is asked for, and {n} more "
    "from the CPU.",
    "to_compare_run": "To compare, run the other {n} there (about {minutes} min).",
    "patch_is_measured": "{build} is measured: name it if that is what you have.",
    "cleanest": "What you gain is not known; the settled build that fails least is {build}, with failures there: "
    "{n} without a workaround, {m} with one.",
    "too_new_though": "Too new to judge ({n} issue(s) reported since its release)",
    "gained": "{n} gained",
    "lost_helped": "{n} lost (it has a workaround)",
    "all_lost_helped": "{n} lost (each has a workaround)",
    "none_lost": "none lost",
    "fails_in_new": "{n} fails in new features",
    "fail_in_new": "{n} fail in new features",
    "not_known_before": "{n} not known before",
    "not_known_there": "{n} not known there",
    "none_measured_enough": "No newer build is measured enough: most is known of {best}, {measured} of {applicable}.",
    "all_lose": "Every newer build with enough measured loses something without a workaround: the best, {best}, gains "
    "{n} and loses {m} so.",
    "none_outweighs": "On no newer build with enough measured does what is gained outweigh what newly needs a "
    "workaround: the best, {best}, gains {n} and loses {m}, each with a workaround.",
    "none_gains": "No newer build with enough measured gains anything: the best is {best}.",
    "hopeful_unconfirmed": "{best} gains {n}, but no gain rests on more than a single run.",
    "hopeful_untried": "{best} gains {n}, but loses {m}, with workarounds that are not verified there.",
    "hopeful_unknown": "{best} gains {n}, but may lose {m}: what fails there and is not known before.",
    "on_cpu_alone": "On {build} only the CPU has an answer for {n} of {m} issues, and it does not count for a GPU "
    "until the two are known to agree (so far {agreed} of {compared} pairs do).",
    "turned_outside": "Outside of what you watch ({n}): {gained} gained, {lost} lost.",
    # Two builds side by side.
    "from_to": "From {before} to {after} on {hardware}: {said}",
    "both_are": "Both are {build}: nothing can differ",
    "newly_broken": "{n} newly broken",
    "none_newly_broken": "none newly broken",
    "fixed": "{n} fixed",
    "none_fixed": "none fixed",
    "fails_otherwise": "{n} fails in another way",
    "fail_otherwise": "{n} fail in another way",
    "is_bigger_there": "{n} takes more memory",
    "are_bigger_there": "{n} take more memory",
    "is_more_work_there": "{n} does more work",
    "are_more_work_there": "{n} do more work",
    "is_slower_there": "{n} takes longer",
    "are_slower_there": "{n} take longer",
    "is_newly": "{n} newly",
    "are_newly": "{n} newly",
    "still_fails": "{n} still fails",
    "still_fail": "{n} still fail",
    "is_silent": "{n} gives wrong numbers without an error",
    "are_silent": "{n} give wrong numbers without an error",
    "by_old_evidence": "{n} by old evidence",
    "has_workaround": "{n} has a workaround",
    "have_workaround": "{n} have a workaround",
    "has_untried": "{n} has a workaround not verified there",
    "have_untried": "{n} have a workaround not verified there",
    "turn_stopped_working": "workaround stopped working: {names}",
    "turn_harmful": "does harm there: {names}",
    "turn_now_needed": "needs a workaround there; measured to help: {names}",
    "turn_no_longer_verified": "workaround not verified there: {names}",
    "turn_no_longer_needed": "workaround no longer needed: {names}",
    "turn_now_works": "helps now: {names}",
    "turn_still_works": "still helps: {names}",
    "may_be_luck": "flaky on {build}: the passes next to it may be luck ({needed} in a row would decide)",
    "with_packages": "with {before}, then {after}",
    "nothing_beside_torch": "nothing besides torch",
    "concerns_who_has": "concerns only environments with {package}",
    "build_inferred": "{build}: inferred from {ground}",
    "build_not_covered": "{build}: passes as reported; not covered: {what}",
    # What a search found, and what to do about a failure.
    "title": "{title}",
    "span": "{first} to {last}",
    "exported_by": "exported by torch {having}, not by {lacking}",
    "exported_by_all": "exported by every torch from {first} to {last}",
    "exported_by_none": "as it is written, exported by no torch from {first} to {last}",
    "exports_not_known": "which torch exports it is not known",
    "exported_otherwise": "the same function under the other C++ string ABI, _GLIBCXX_USE_CXX11_ABI={abi}, is exported "
    "by torch {releases}",
    "exported_here": "torch {torch}, which the text states, exports it: another build of torch may have been loaded, "
    "or none yet (import torch before the package)",
    "not_exported_here": "torch {torch}, which the text states, does not export it",
    "exported_otherwise_here": "torch {torch}, which the text states, is one of these: the package was built with "
    "another string ABI than that torch",
    "exports_read": "read in the default Linux x86-64 wheels of the package index on {day}",
    "no_build_here": "No build here is this environment: {why}",
    "worst_gpu_counts": "Several kinds of GPU are named ({gpus}), and the worst counts: {gpu}.",
    "is_an_error": "This is an error: it is compared with the signatures of all issues",
    "environment_is": "Your environment is {build}",
    "unreadable_query": "This is no query that can be read: {fault}",
    "matrix_of_on": "The matrix of {query} on {on}",
    "matrix_of": "The matrix of {query}",
    "matrix_on": "The matrix on {on}",
    "class_unmeasured_matrix": "Nobody has measured {hardware} here yet: the matrix shows other hardware.",
    "class_unmeasured": "Nobody has measured {hardware} here yet.",
    "thread_named_by": "{thread} is this issue.",
    "thread_report": "{thread} reports this issue.",
    "thread_fix": "{thread} is the fix of this issue.",
    "thread_evidence": "{thread} is linked from this issue.",
    "thread_absent": "{thread} is not in the catalogue",
    "add_thread": "Read the thread on GitHub. If you can reproduce it, add it with:",
    "nothing_about": "Nothing here is about {asked}.",
    "no_issue_for": "No issue is known here for {query}.",
    "compare_builds": "Compare {a} with {b}",
    "wheels_for_driver": "Which torch runs on driver {driver}",
    "driver_and_issues": "No answer here depends on the driver ({driver}): it decides which wheels run.",
    "upgrade_from": "Where to go from {build}",
    "upgrade_says": "The build to upgrade to, what it fixes and breaks, and the note for the pull request.",
    "name_of_class": "{name} is of the hardware class {hardware}",
    "hardware_class": "The hardware class {hardware}",
    "measured_on_class": "{n} of {all} issues are measured there.",
    "measured_on_gpu": "{n} of {all} issues are measured there. Of the wheels tested here these hold code for {gpu}: "
    "{holding}; these hold none: {lacking} (read in them from {first} to {last}).",
    "measure_class": "Nobody has measured this class here yet; measured are {measured}. On a machine that has it this "
    "measures:",
    "measure_gpu": "Of the wheels tested here these hold code for {gpu}: {holding}; these hold none: {lacking} (read "
    "in them from {first} to {last}). Nobody has measured this class here yet; measured are {measured}. On a machine "
    "that has it this measures:",
    "no_torch_here": 'No tested build is torch {build}. For its wheels, ask "Is there a wheel?" (`knowngood wheels`).',
    "in_these_words": "Its signature is in these words.",
    "signatures_too_slow": "These signatures took too long to look for: {issues}.",
    "torch_on_python": "torch {torch} on Python {python}",
    "cuda_and_triton": "CUDA {cuda}, Triton {triton}",
    "make_sure": "Paste the whole traceback with the output of python -m torch.utils.collect_env, to be sure.",
    "use": "Use this workaround, measured to help on {build}: {workaround}.",
    "use_or_upgrade": "Upgrade to torch {release}, or use this workaround, measured to help on {build}: {workaround}.",
    "upgrade": "Upgrade to torch {release}, where it passes.",
    "try_in_part": "Try this workaround, which helps in part on {build}: {workaround}.",
    "follow": "No workaround was measured to help: avoid this path, and follow the thread upstream.",
    "try_unmeasured": "Nothing is measured on your build: try the workarounds below, none of which was run there.",
    "measure": "Measure it where you are: knowngood run --issues {issue} --builds {build}",
    # What turned.
    "issue": "{issue}: {said}",
    "issues": "{n} issues: {said}",
    "installable_no_more": "{names} can no longer be installed",
    "installable_again": "{names} can be installed again",
    "on_cells": "{said} on {n} cell(s)",
    "first_measured": "measured for the first time: {said}",
    "workarounds": "{n} workaround(s)",
    "more_workarounds": "{n} more workaround(s)",
    "workarounds_open": "workarounds to verify again",
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
    """Writes messages in one language: `template` writes a template in it, `name` a name, an id or a number, and
    `quote` somebody else's words; a list of names stands between `comma`s, one of clauses between `semicolon`s.
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


_ENGLISH = Writer(template=str, name=plain_name, quote=str, comma=", ", semicolon="; ")


def english(message: Message | None) -> str:
    """The message in English; empty where there is no message."""
    return _in_english(IdentityKey(message)) if message else ""


@lru_cache(maxsize=16_384)  # pages and the gate tell the same message of one row again and again
def _in_english(same: IdentityKey[Message]) -> str:
    return _ENGLISH.write(same.it)


def sentence(message: Message) -> str:
    """The same as a sentence begins: with a capital, unless that is a hardware class."""
    words = english(message)
    return words if message.key == "on_class" else words[:1].upper() + words[1:]
