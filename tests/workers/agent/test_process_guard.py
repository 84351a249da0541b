import subprocess
import sys

PROGRAM = (
    "import sys\nfrom knowngood_workers.agent.process_guard import run_guarded\nrun_guarded(lambda: sys.exit({end!r}))"
)


def test_a_guarded_program_that_ends_with_a_sentence_says_it() -> None:
    """As any other: whoever started it tells people why the fleet was lost, and has it from there."""
    command = [sys.executable, "-c", PROGRAM.format(end="the head does not answer any more")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "the head does not answer any more\n")


def test_a_guarded_program_that_ends_with_a_number_ends_with_it() -> None:
    command = [sys.executable, "-c", PROGRAM.format(end=7)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (7, "")
