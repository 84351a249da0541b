"""The warnings of `knowngood check`: what may fool a verdict although nothing is wrong with the files.

Each has a sentence of what was found (with blanks), why it can fool a verdict, and what to do. A row that is right all
the same says so: `[[waiver]] warning = "...", reason = "..."`.
"""

from collections.abc import Mapping
from enum import StrEnum


class WarningCode(StrEnum):
    BROAD_EXCEPT = "broad-except"
    SUPPRESS_ERRORS = "suppress-errors"
    EAGER_BASELINE = "eager-baseline"
    LATE_NOT_APPLICABLE = "late-not-applicable"
    SIGNATURE_IN_SCRIPT = "signature-in-script"
    WIDE_SIGNATURE = "wide-signature"
    WIDE_EXERCISES = "wide-exercises"
    COMPOSITE_OPERATOR = "composite-operator"
    UNNAMED_SUSPECT = "unnamed-suspect"
    NO_COMPARISON = "no-comparison"
    CONTROL_APART = "control-apart"
    COMPILED_CONTROL = "compiled-control"
    DISCARDED_RESULT = "discarded-result"
    PATH_SWITCH = "path-switch"
    VERSION_WORDS = "version-words"
    IDLE_WAIVER = "idle-waiver"


WARNINGS: Mapping[WarningCode, tuple[str, str, str]] = {
    WarningCode.BROAD_EXCEPT: (
        "{} around a call of what is measured does not raise again",
        "a failure that is swallowed here counts as a pass",
        "let the exception through, or raise WrongResult",
    ),
    WarningCode.SUPPRESS_ERRORS: (
        "the baseline or the control sets {}",
        "what fails to compile then runs in eager mode, and passes",
        "set it in a workaround alone",
    ),
    WarningCode.EAGER_BASELINE: (
        'the baseline exercises only "eager"',
        "whatever runs proves that, a script that never takes the suspect path too",
        "name what the suspect path leaves behind, such as dynamo_graph or operator:NAMESPACE::NAME",
    ),
    WarningCode.LATE_NOT_APPLICABLE: (
        "NotApplicable is raised {}",
        "a failure of the issue itself can be called one that does not apply, and is then seen by nobody",
        "ask before the suspect call whether the arm can exist here",
    ),
    WarningCode.SIGNATURE_IN_SCRIPT: (
        "the signature matches this line of the script",
        "whoever quotes or prints the line, a compiler or the script itself, makes another failure the issue",
        "match words that only the failure has, and keep them out of the code",
    ),
    WarningCode.WIDE_SIGNATURE: (
        "the signature matches a failure of something else ({})",
        "such a failure would be counted as this issue",
        "match more of the message, or what stands beside it",
    ),
    WarningCode.WIDE_EXERCISES: (
        'the row is about {}, and its baseline exercises only "{}"',
        'a backend that never gets there, such as "eager", would prove as much',
        "name what the suspect path leaves behind, such as inductor_cpp or triton_launch, or `[proof] backends`",
    ),
    WarningCode.COMPOSITE_OPERATOR: (
        '"{}" is an operator that is made of others',
        "it is taken apart before a compiled graph or a dispatch mode could see it, so that no run of it is proven",
        "name the operator that it calls",
    ),
    WarningCode.UNNAMED_SUSPECT: (
        'the baseline exercises "{}", and nothing says which function must run compiled',
        "a script that compiles something else would prove as much",
        "name the functions under `[proof] suspect`",
    ),
    WarningCode.NO_COMPARISON: (
        "{}",
        "a wrong result passes where nothing is held against what is expected",
        "compare in the script, and return the values that were compared",
    ),
    WarningCode.CONTROL_APART: (
        "{}",
        "where control and baseline compute different things, a mistake of the script looks like the issue",
        "let both call one helper, with the same defaults",
    ),
    WarningCode.COMPILED_CONTROL: (
        "the control calls {}",
        "where it takes the suspect path too, both are wrong alike, and nobody sees it",
        "compute it without a compiler",
    ),
    WarningCode.DISCARDED_RESULT: (
        "the {} calls what is measured ({}) and uses nothing that it returns",
        "what is compared, or returned, may have been computed by something else",
        "compare and return what the call gave",
    ),
    WarningCode.PATH_SWITCH: (
        "the baseline asks or switches what is compiled ({})",
        "what runs compiled may then be something else than what is suspect, and prove a pass of it",
        "compile all of the suspect, and leave the switch to a workaround",
    ),
    WarningCode.VERSION_WORDS: (
        '"{}" (read as: {}) is not what was measured: {}',
        "readers take the sentence for what the evidence says",
        "say what was measured, or leave it to the page, which shows it",
    ),
    WarningCode.IDLE_WAIVER: (
        'the waiver of "{}" waives nothing',
        "it would hide the next finding of its kind",
        "remove it",
    ),
}


def in_words(code: WarningCode, *values: str) -> str:
    """The whole sentence; `values` fill its blanks."""
    finding, why, do = WARNINGS[code]
    return f"{finding.format(*values)}: {why}; {do}"
