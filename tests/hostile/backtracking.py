"""A matcher that backtracks as Python's own does, in Python, and counts its steps: no clock tells them.

It runs the tree that `re` parses, without the shortcuts of `re`, which make some searches quicker and none slower.
"""

import importlib
from collections.abc import Sequence
from typing import Any

_PARSER: Any = importlib.import_module("re._parser")
_COMPILER: Any = importlib.import_module("re._compiler")
_CONSTANTS: Any = importlib.import_module("re._constants")
_Step = tuple[Any, ...]


class CountedPattern:
    """A pattern as a program: characters, forks that are tried in order, and looks around."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        tree = _PARSER.parse(pattern, flags)
        self._flags = tree.state.flags
        self._program: list[_Step] = []
        self._emit(tree)
        self._program.append(("match", None, None))
        self.steps = 0

    def steps_to_search(self, text: str, *, is_anchored: bool) -> int:
        """As `finditer` looks for all matches, one after the other; an anchored one is tried at the beginning alone."""
        self.steps = at = 0
        while at <= len(text):
            end = self._run(0, text, at)
            at = max(end if end is not None else 0, at + 1)
            if is_anchored:
                break
        return self.steps

    def end_at(self, text: str, start: int) -> int | None:
        """Where the match that begins at `start` ends."""
        return self._run(0, text, start)

    def _emit(self, tree: Sequence[Any]) -> None:
        for code, given in tree:
            self._emit_one(str(code), given)

    def _emit_one(self, name: str, given: Any) -> None:
        program = self._program
        match name:
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                self._emit_repeat(name, *given)
            case "BRANCH":
                ends = []
                for branch in given[1][:-1]:
                    fork = self._place()
                    self._emit(branch)
                    ends.append(self._place())
                    program[fork] = ("fork", fork + 1, len(program))
                self._emit(given[1][-1])
                for end in ends:
                    program[end] = ("fork", len(program), None)
            case "SUBPATTERN":
                self._emit(given[-1])
            case "ATOMIC_GROUP":
                self._emit_inner("atomic", given, is_negative=False, behind=0)
            case "ASSERT" | "ASSERT_NOT":
                behind = given[1].getwidth()[0] if given[0] < 0 else 0
                self._emit_inner("look", given[1], is_negative=name == "ASSERT_NOT", behind=behind)
            case "AT":
                program.append(("at", str(given), None))
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY":
                program.append(("one", _Class([(getattr(_CONSTANTS, name), given)], self._flags), None))
            case _:
                raise NotImplementedError(name)

    def _place(self) -> int:
        self._program.append(())
        return len(self._program) - 1

    def _emit_inner(self, kind: str, tree: Sequence[Any], *, is_negative: bool, behind: int) -> None:
        place = self._place()
        self._emit(tree)
        self._program.append(("match", None, None))
        self._program[place] = (kind, (place + 1, is_negative, behind), len(self._program))

    def _emit_repeat(self, name: str, least: int, most: Any, tree: Any) -> None:
        if name == "POSSESSIVE_REPEAT":
            inner = [(_CONSTANTS.MAX_REPEAT, (least, most, tree))]
            self._emit_inner("atomic", inner, is_negative=False, behind=0)
            return
        assert most is not _CONSTANTS.MAXREPEAT or tree.getwidth()[0], "a repetition of nothing"
        for _ in range(least):
            self._emit(tree)
        program, forks = self._program, []
        if most is _CONSTANTS.MAXREPEAT:
            forks.append(self._place())
            self._emit(tree)
            program.append(("fork", forks[0], None))
        else:
            for _ in range(most - least):
                forks.append(self._place())
                self._emit(tree)
        for fork in forks:
            ways = (fork + 1, len(program))
            program[fork] = ("fork", *(ways if name == "MAX_REPEAT" else reversed(ways)))

    def _run(self, begin: int, text: str, start: int) -> int | None:  # noqa: C901 - one kind of step after the other
        program, left, length, steps, found = self._program, [(begin, start)], len(text), 0, None
        while left and found is None:
            step, at = left.pop()
            while True:
                steps += 1
                kind, given, other = program[step]
                if kind == "one":
                    if at >= length or not given[text[at]]:
                        break
                    step, at = step + 1, at + 1
                elif kind == "fork":
                    if other is not None:
                        left.append((other, at))
                    step = given
                elif kind == "match":
                    found = at
                    break
                elif kind == "at":
                    if not _is_at(given, text, at, self._flags):
                        break
                    step += 1
                else:
                    end = self._look(given, text, at)
                    if end is None:
                        break
                    step, at = other, (end if kind == "atomic" else at)
        self.steps += steps
        return found

    def _look(self, given: Sequence[Any], text: str, at: int) -> int | None:
        """Where the inner part ends; of a negative one, where it does not match."""
        inner, is_negative, behind = given
        end = self._run(inner, text, at - behind) if at >= behind else None
        return (at if end is None else None) if is_negative else end


class _Class(dict[str, bool]):
    """Whether one place of a pattern takes a character, as Python's own compiler says."""

    def __init__(self, tree: list[Any], flags: int) -> None:
        super().__init__()
        pattern = _PARSER.SubPattern(_PARSER.State(), tree)
        pattern.state.flags, pattern.state.str = flags, "one"
        self._is_match = _COMPILER.compile(pattern, flags).match

    def __missing__(self, character: str) -> bool:
        return self.setdefault(character, self._is_match(character) is not None)


def _is_at(name: str, text: str, at: int, flags: int) -> bool:
    is_multiline = bool(flags & _CONSTANTS.SRE_FLAG_MULTILINE)
    match name:
        case "AT_BEGINNING":
            return at == 0 or (is_multiline and text[at - 1] == "\n")
        case "AT_BEGINNING_STRING":
            return at == 0
        case "AT_END":
            return text[at:] in {"", "\n"} or (is_multiline and text[at : at + 1] == "\n")
        case "AT_END_STRING":
            return at == len(text)
        case "AT_BOUNDARY" | "AT_NON_BOUNDARY":
            sides = [_is_word(text[max(0, at - 1) : at]), _is_word(text[at : at + 1])]
            return (sides[0] is not sides[1]) is (name == "AT_BOUNDARY")
        case _:
            raise NotImplementedError(name)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
