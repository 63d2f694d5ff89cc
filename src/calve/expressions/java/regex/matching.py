"""A search that can be stopped: it tries what Java tries, in the same order, and counts its steps."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, assert_never

from calve.expressions.java.budget import Budget
from calve.expressions.java.regex import sets
from calve.expressions.java.regex.nodes import (
    At,
    Atomic,
    Back,
    Choice,
    Greed,
    Group,
    Look,
    Node,
    One,
    PatternInvalid,
    Place,
    Repeat,
    Sequence,
)
from calve.expressions.java.regex.sets import CharSet
from calve.expressions.java.regex.syntax import parse

_LONGEST_PROGRAM = 5_000
_STEPS_AT_ONCE = 1_000

Groups: TypeAlias = tuple[int, ...]
"""Where each group starts and ends, -1 where it was not found; group 0 is the whole."""


@dataclass(frozen=True, slots=True)
class _Accept:
    accepts: CharSet


@dataclass(frozen=True, slots=True)
class _Run:
    """Take as many characters of a set as there are, or as few as possible."""

    accepts: CharSet
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class _Split:
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class _Jump:
    to: int


@dataclass(frozen=True, slots=True)
class _Save:
    slot: int


@dataclass(frozen=True, slots=True)
class _Check:
    place: Place


@dataclass(frozen=True, slots=True)
class _Inside:
    """Run a program of its own here: for atomic groups, and for looking ahead or behind."""

    program: "tuple[_Instruction, ...]"
    behind: bool
    negative: bool
    consumes: bool


@dataclass(frozen=True, slots=True)
class _Repeated:
    number: int
    any_case: bool


@dataclass(frozen=True, slots=True)
class _Moved:
    """Go on after the repetition if nothing was taken since the mark, and repeat otherwise."""

    slot: int
    again: int


@dataclass(frozen=True, slots=True)
class _Done:
    pass


_Instruction: TypeAlias = _Accept | _Run | _Split | _Jump | _Save | _Check | _Inside | _Repeated | _Moved | _Done


class _Compiler:
    """Lays a pattern out as instructions."""

    def __init__(self, groups: int) -> None:
        self.slots = 2 * (groups + 1)
        self._total = 0

    def program(self, node: Node) -> tuple[_Instruction, ...]:
        code: list[_Instruction] = []
        self._emit(node, code)
        code.append(_Done())
        return tuple(code)

    def _emit(self, node: Node, code: list[_Instruction]) -> None:  # noqa: C901 - one case for each kind
        self._total += 1
        if self._total > _LONGEST_PROGRAM:
            raise PatternInvalid("The pattern has too many repetitions in it")
        match node:
            case One():
                code.append(_Accept(node.accepts))
            case At():
                code.append(_Check(node.place))
            case Sequence():
                for part in node.parts:
                    self._emit(part, code)
            case Choice():
                self._emit_choice(node, code)
            case Group():
                code.append(_Save(2 * node.number))
                self._emit(node.inner, code)
                code.append(_Save(2 * node.number + 1))
            case Repeat():
                self._emit_repeat(node, code)
            case Look():
                code.append(_Inside(self.program(node.inner), node.behind, node.negative, consumes=False))
            case Atomic():
                code.append(_Inside(self.program(node.inner), behind=False, negative=False, consumes=True))
            case Back():
                code.append(_Repeated(node.number, node.any_case))
            case _:
                assert_never(node)

    def _emit_choice(self, node: Choice, code: list[_Instruction]) -> None:
        jumps: list[int] = []
        for option in node.options[:-1]:
            split = len(code)
            code.append(_Done())
            self._emit(option, code)
            jumps.append(len(code))
            code.append(_Done())
            code[split] = _Split(split + 1, len(code))
        self._emit(node.options[-1], code)
        for jump in jumps:
            code[jump] = _Jump(len(code))

    def _emit_repeat(self, node: Repeat, code: list[_Instruction]) -> None:
        if node.greed is Greed.POSSESSIVE:
            inner = Repeat(node.inner, node.least, node.most, Greed.GREEDY)
            code.append(_Inside(self.program(inner), behind=False, negative=False, consumes=True))
        elif isinstance(node.inner, One):
            code.append(_Run(node.inner.accepts, node.least, node.most, lazy=node.greed is Greed.LAZY))
        else:
            for _ in range(node.least):
                self._emit(node.inner, code)
            if node.most is None:
                self._emit_endless(node, code)
            else:
                self._emit_optional(node, node.most - node.least, code)

    def _emit_endless(self, node: Repeat, code: list[_Instruction]) -> None:
        mark = self.slots
        self.slots += 1
        split = len(code)
        code.extend((_Done(), _Save(mark)))
        self._emit(node.inner, code)
        code.append(_Moved(mark, split))
        code[split] = _split(split + 1, len(code), node.greed)

    def _emit_optional(self, node: Repeat, times: int, code: list[_Instruction]) -> None:
        splits: list[int] = []
        for _ in range(times):
            splits.append(len(code))
            code.append(_Done())
            self._emit(node.inner, code)
        for split in splits:
            code[split] = _split(split + 1, len(code), node.greed)


def _split(inner: int, after: int, greed: Greed) -> _Split:
    return _Split(after, inner) if greed is Greed.LAZY else _Split(inner, after)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that can search; ``literal`` is its text if it is nothing else."""

    program: tuple[_Instruction, ...]
    slots: int
    groups: int
    names: dict[str, int]
    literal: str | None

    def find(self, budget: Budget, text: str, start: int, search_start: int) -> Groups | None:
        """Return the groups of the first match from ``start`` on, or None."""
        if self.literal is not None:
            found = text.find(self.literal, start)
            return None if found < 0 else (found, found + len(self.literal))
        search = _Search(budget, text, search_start)
        for place in range(start, len(text) + 1):
            slots = search.run(self.program, place, (-1,) * self.slots)
            if slots is not None:
                return (place, slots[1], *slots[2 : 2 * (self.groups + 1)])
        return None


@lru_cache(maxsize=128)
def compile_pattern(text: str) -> Pattern:
    """Return the pattern of a text.

    Raises:
        PatternInvalid: it is none.
    """
    parsed = parse(text)
    compiler = _Compiler(parsed.groups)
    program = compiler.program(parsed.node)
    parts = parsed.node.parts if isinstance(parsed.node, Sequence) else (parsed.node,)
    literals = [part.literal for part in parts if isinstance(part, One) and part.literal is not None]
    literal = "".join(literals) if literals and len(literals) == len(parts) else None
    return Pattern(program, compiler.slots, parsed.groups, parsed.names, literal)


class _Search:
    """One search through one text."""

    def __init__(self, budget: Budget, text: str, search_start: int) -> None:
        self._budget = budget
        self._text = text
        self._search_start = search_start
        self._steps = 0

    def run(  # noqa: C901, PLR0912, PLR0915 - the one loop that everything turns in
        self, program: tuple[_Instruction, ...], place: int, slots: Groups, end: int | None = None
    ) -> Groups | None:
        """Return the groups if the program matches at a place (and up to ``end``), or None."""
        text = self._text
        size = len(text)
        at = 0
        # What to try next when this fails: an instruction, a place, the groups, and for a run of characters its bound.
        pending: list[tuple[int, int, Groups, int]] = []
        while True:
            self._count()
            instruction = program[at]
            failed = False
            match instruction:
                case _Accept():
                    failed = place >= size or not instruction.accepts(text[place])
                    place += 1
                    at += 1
                case _Run():
                    low, high = self._extent(instruction, place)
                    failed = low > high
                    if not failed:
                        at += 1
                        place = low if instruction.lazy else high
                        if low < high:
                            pending.append((at, place, slots, high if instruction.lazy else low))
                case _Split():
                    pending.append((instruction.second, place, slots, -1))
                    at = instruction.first
                case _Jump():
                    at = instruction.to
                case _Save():
                    slots = (*slots[: instruction.slot], place, *slots[instruction.slot + 1 :])
                    at += 1
                case _Check():
                    failed = not self._holds(instruction.place, place)
                    at += 1
                case _Inside():
                    found = self._inside(instruction, place, slots)
                    failed = (found is None) is not instruction.negative
                    if found is not None and not instruction.negative:
                        place = found[1] if instruction.consumes else place
                        slots = (slots[0], slots[1], *found[2:])
                    at += 1
                case _Repeated():
                    length = self._repeated(instruction, place, slots)
                    failed = length is None
                    place += length or 0
                    at += 1
                case _Moved():
                    at = at + 1 if slots[instruction.slot] == place else instruction.again
                case _Done():
                    if end is None or place == end:
                        return (slots[0], place, *slots[2:])
                    failed = True
                case _:
                    assert_never(instruction)
            if failed:
                if not pending:
                    return None
                at, place, slots, bound = pending.pop()
                if bound >= 0:
                    place += 1 if place < bound else -1
                    if place != bound:
                        pending.append((at, place, slots, bound))

    def _count(self) -> None:
        self._steps += 1
        if self._steps >= _STEPS_AT_ONCE:
            self._budget.search(self._steps)
            self._steps = 0

    def _extent(self, run: _Run, place: int) -> tuple[int, int]:
        """Return the nearest and the farthest place that a run can end at; the first is beyond the second if none."""
        text, accepts = self._text, run.accepts
        stop = len(text) if run.most is None else min(len(text), place + run.most)
        end = place
        while end < stop and accepts(text[end]):
            end += 1
        self._budget.search((end - place) // 8)
        return place + run.least, end

    def _inside(self, instruction: _Inside, place: int, slots: Groups) -> Groups | None:
        if not instruction.behind:
            return self.run(instruction.program, place, slots)
        for start in range(place, -1, -1):
            found = self.run(instruction.program, start, slots, end=place)
            if found is not None:
                return found
        return None

    def _repeated(self, instruction: _Repeated, place: int, slots: Groups) -> int | None:
        if 2 * instruction.number + 1 >= len(slots):
            return None
        start, end = slots[2 * instruction.number], slots[2 * instruction.number + 1]
        if start < 0 or end < 0:
            return None
        wanted, there = self._text[start:end], self._text[place : place + end - start]
        same = wanted.lower() == there.lower() if instruction.any_case else wanted == there
        return end - start if same else None

    def _holds(self, wanted: Place, place: int) -> bool:
        text = self._text
        match wanted:
            case Place.START:
                return place == 0
            case Place.END:
                return place == len(text)
            case Place.END_BEFORE_NEWLINE:
                return self._is_before_last_newline(place)
            case Place.LINE_START:
                return place == 0 or (place < len(text) and self._ends_line(place - 1))
            case Place.LINE_END:
                return place == len(text) or self._starts_line_end(place)
            case Place.WORD_EDGE:
                return self._is_word_edge(place)
            case Place.NO_WORD_EDGE:
                return not self._is_word_edge(place)
            case Place.SEARCH_START:
                return place == self._search_start
            case _:
                assert_never(wanted)

    def _is_before_last_newline(self, place: int) -> bool:
        text, size = self._text, len(self._text)
        if place == size or text[place:] == "\r\n":
            return True
        return place == size - 1 and text[place] in sets.LINE_ENDS and text[place - 1 : size] != "\r\n"

    def _ends_line(self, place: int) -> bool:
        text = self._text
        return text[place] in sets.LINE_ENDS and text[place : place + 2] != "\r\n"

    def _starts_line_end(self, place: int) -> bool:
        text = self._text
        return text[place] in sets.LINE_ENDS and not (place > 0 and text[place - 1 : place + 1] == "\r\n")

    def _is_word_edge(self, place: int) -> bool:
        text = self._text
        before = place > 0 and sets.is_word(text[place - 1])
        after = place < len(text) and sets.is_word(text[place])
        return before is not after
