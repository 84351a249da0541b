"""The limits of what evidence may hold, in a bundle and in each field: more than any machine or repro of ours says, and
little enough to show. It binds what our own agents say as well: an arm is the source of its record, wherever it ran.

Each function says in words what is too much of a value; None for a good one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import chain

from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.machine import LONGEST_WORD, MOST_CAPABILITY, MOST_GPUS, Machine
from knowngood.domain.verdicts.outcome import RunRecord

MOST = (1 << 53) - 1
"""The largest whole number that every reader of JSON knows exactly."""

MOST_LINES = 1_000_000
"""Between a bundle's first and its last. Of each that says something new up to 200 bytes are held while it comes in."""

MOST_LOCKS = 100_000
"""Of these lines, locks and what was found installed by them: what they are known by is held too."""

_MOST_S = 10.0**8  # three years
LONGEST_SAYING = 10_000
"""Characters of a sentence that the harness or an agent says."""

LOG_LIMIT_BYTES = 1 << 20
"""The longest log, lock or record kept anywhere. Agents cut theirs shorter; bundles may come from anywhere."""

_DIGEST_LENGTH = 32
_MOST_PACKAGES = 5_000
_LONGEST_RECORD = 1 << 20  # characters of all its texts


def machine_problem(machine: Machine) -> str | None:
    words = [value for field in fields(machine) if isinstance(value := getattr(machine, field.name), str)]
    if len(machine.gpus) > MOST_GPUS or len(machine.sandbox) > MOST_GPUS:
        return f"it lists more than {MOST_GPUS} GPUs or means of isolation"
    numbers = (machine.cores, machine.memory_bytes, *chain(*((gpu.index, gpu.memory_bytes) for gpu in machine.gpus)))
    if any(not 0 <= number < MOST_CAPABILITY for gpu in machine.gpus for number in gpu.capability):
        return "the compute capability of a GPU is none"
    return _words_problem((*words, *machine.sandbox, *(gpu.name for gpu in machine.gpus))) or _numbers_problem(numbers)


def event_problem(event: Event) -> str | None:
    """Find what is wrong with an agent's event; the record of an arm is looked at by itself, as the arm wrote it."""
    match event:
        case JobStarted():
            return machine_problem(event.machine)
        case Provisioning():
            numbers = _numbers_problem((event.done_bytes, event.total_bytes))
            return _words_problem([event.phase]) or _saying_problem(event.detail) or numbers
        case EnvironmentReady():
            return _environment_problem(event)
        case ArmStarted():
            return None
        case ArmFinished():
            is_digest = max(len(event.machine), len(event.lock_digest)) <= _DIGEST_LENGTH
            return None if is_digest else "its machine or lock is no digest"
        case JobEnded():
            return _saying_problem(event.problem)


def _environment_problem(event: EnvironmentReady) -> str | None:
    if not 0 <= event.seconds <= _MOST_S:
        return _NO_TIME
    if len(event.lock.encode()) > LOG_LIMIT_BYTES:
        return "its lock is longer than any of ours"
    return entries_problem(event.packages) or entries_problem(event.imported)


_NO_TIME = "its seconds are no time that anything of ours takes"


def _saying_problem(text: str) -> str | None:
    return f"what it says has more than {LONGEST_SAYING} characters" if len(text) > LONGEST_SAYING else None


def record_problem(record: RunRecord) -> str | None:
    if not (0 <= record.wall_s <= _MOST_S and -_MOST_S <= record.own_s <= _MOST_S):
        return _NO_TIME
    if record.exit_code is not None and abs(record.exit_code) > MOST:
        return f"its exit code is larger than {MOST}"
    words = chain(*((path.kind, path.name, path.backend) for path in record.seen))
    counted = chain(
        *(
            (path.compiled, path.ran, path.raised, path.gave_up, path.refused, path.objects, path.kernels, path.on_cuda)
            for path in record.seen
        )
    )
    numbers = (
        record.peak_bytes,
        record.threads,
        record.log_cut_bytes,
        *record.probes.values(),
        record.harness,
        *counted,
    )
    return (
        _numbers_problem(numbers)
        or _words_problem((record.signal, *record.sandbox, *record.probes, *record.observed, *words))
        or entries_problem(record.imported)
        or _length_problem(record)
    )


def _length_problem(record: RunRecord) -> str | None:
    """Texts of the repro and of torch may be long."""
    raised, trouble = record.raised, record.trouble
    if trouble and len(trouble.sentence) > LONGEST_SAYING:
        return f"the sentence of its trouble has more than {LONGEST_SAYING} characters"
    if raised and len(raised.kind) + len(raised.marked) > LONGEST_SAYING:
        return f"the class of its exception has more than {LONGEST_SAYING} characters"
    whole = sum(map(len, record.observed.values())) + (len(raised.message) + len(raised.text) if raised else 0)
    if whole > _LONGEST_RECORD or len(record.observed) + len(record.probes) + len(record.seen) > _MOST_PACKAGES:
        return "its record is longer than any of ours"
    return None


def entries_problem(entries: Mapping[str, str]) -> str | None:
    """Find what is wrong with packages and their versions, or with labels."""
    if len(entries) > _MOST_PACKAGES:
        return f"it names more than {_MOST_PACKAGES} packages or labels"
    return _words_problem(chain(entries, entries.values()))


def _words_problem(words: Iterable[str]) -> str | None:
    long = next((word for word in words if len(word) > LONGEST_WORD), None)
    return None if long is None else f'"{long[:40]}..." has more than {LONGEST_WORD} characters'


def _numbers_problem(numbers: Iterable[int]) -> str | None:
    return None if all(0 <= number <= MOST for number in numbers) else f"one of its numbers is not within 0 and {MOST}"
