"""How a regular expression is read from its text."""

from dataclasses import dataclass, field, replace

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
    longest,
)
from calve.expressions.java.regex.sets import CharSet

_DEPTH = 50
_MOST_REPEATS = 1_000
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Flags:
    """What the letters in ``(?…)`` switch on."""

    any_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    comments: bool = False
    unix_lines: bool = False
    unicode_case: bool = False


_FLAGS = {
    "i": "any_case",
    "s": "dot_all",
    "m": "multi_line",
    "x": "comments",
    "d": "unix_lines",
    "u": "unicode_case",
}


@dataclass(slots=True)
class Parsed:
    """A regular expression: its parts, how many groups it has, and their names."""

    node: Node
    groups: int
    names: dict[str, int] = field(default_factory=dict)


def parse(pattern: str) -> Parsed:
    """Return the parts of a regular expression.

    Raises:
        PatternInvalid: it is none.
    """
    parser = _Parser(pattern)
    node = parser.choice(0)
    if parser.at < len(pattern):
        raise PatternInvalid(f"Unmatched closing ')' near index {parser.at}")
    return Parsed(node, parser.groups, parser.names)


class _Parser:
    """Reads a pattern from the left."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.names: dict[str, int] = {}
        self.flags = Flags()

    def peek(self) -> str:
        if self.flags.comments:
            self._skip_comments()
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        character = self.pattern[self.at : self.at + 1]
        if not character:
            raise PatternInvalid(f"Unexpected end of the pattern near index {self.at}")
        self.at += 1
        return character

    def take_if(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def choice(self, depth: int) -> Node:
        if depth > _DEPTH:
            raise PatternInvalid("The pattern is nested too deeply")
        options = [self._sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _skip_comments(self) -> None:
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            if character == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end
            elif character in " \t\n\x0b\f\r":
                self.at += 1
            else:
                return

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (character := self.peek()) and character not in "|)":
            atoms = self._atoms(depth)
            if atoms:
                atoms[-1] = self._repeated(atoms[-1])
            parts.extend(atoms)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atoms(self, depth: int) -> list[Node]:
        character = self.take()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return [One(self._class(depth))]
            case ".":
                return [One(self._dot())]
            case "^":
                return [At(Place.LINE_START if self.flags.multi_line else Place.START)]
            case "$":
                return [At(Place.LINE_END if self.flags.multi_line else Place.END_BEFORE_NEWLINE)]
            case "*" | "+" | "?":
                raise PatternInvalid(f"Dangling meta character '{character}' near index {self.at - 1}")
            case "{":
                # A repetition of nothing; whether it is one at all comes out next.
                self.at -= 1
                return [Sequence(())]
            case "\\":
                return self._escape()
            case _:
                return [self._literal(character)]

    def _literal(self, character: str) -> Node:
        if self.flags.any_case and character.lower() != character.upper():
            return One(sets.any_case(sets.one(character)))
        return One(sets.one(character), character)

    def _dot(self) -> CharSet:
        if self.flags.dot_all:
            return lambda _: True
        return sets.negated(sets.one("\n") if self.flags.unix_lines else sets.any_of(sets.LINE_ENDS))

    def _repeated(self, node: Node) -> Node:
        match self.peek():
            case "*":
                least, most = 0, None
            case "+":
                least, most = 1, None
            case "?":
                least, most = 0, 1
            case "{":
                least, most = self._bounds()
            case _:
                return node
        self.at += 1
        greed = Greed.LAZY if self.take_if("?") else Greed.POSSESSIVE if self.take_if("+") else Greed.GREEDY
        return Repeat(node, least, most, greed)

    def _bounds(self) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.at)
        least, comma, most = self.pattern[self.at + 1 : end].partition(",")
        if end < 0 or not least.isdecimal() or not least.isascii() or (most and not most.isdecimal()):
            raise PatternInvalid(f"Illegal repetition near index {self.at}")
        if len(least) > 9 or len(most) > 9 or (most and int(most) < int(least)):
            raise PatternInvalid(f"Illegal repetition range near index {self.at}")
        self.at = end
        low, high = int(least), int(most) if most else (None if comma else int(least))
        if max(low, high or 0) > _MOST_REPEATS:
            raise PatternInvalid(f"More than {_MOST_REPEATS} repetitions are not supported")
        return low, high

    def _group(self, depth: int) -> list[Node]:  # noqa: C901 - one case for each kind
        outer = self.flags
        if not self.take_if("?"):
            return [self._capturing(depth)]
        for opening, behind, negative in (
            ("=", False, False),
            ("!", False, True),
            ("<=", True, False),
            ("<!", True, True),
        ):
            if self.take_if(opening):
                inner = self._closed(depth, outer)
                if behind and longest(inner) is None:
                    raise PatternInvalid(
                        f"Look-behind group does not have an obvious maximum length near index {self.at}"
                    )
                return [Look(inner, behind, negative)]
        if self.take_if(":"):
            return [self._closed(depth, outer)]
        if self.take_if(">"):
            return [Atomic(self._closed(depth, outer))]
        if self.take_if("<"):
            name = self._name()
            if name in self.names:
                raise PatternInvalid(f"Named capturing group <{name}> is already defined")
            self.names[name] = self.groups + 1
            return [self._capturing(depth)]
        self.flags = self._read_flags(outer)
        if self.take_if(")"):
            return []
        if not self.take_if(":"):
            raise PatternInvalid(f"Unknown inline modifier near index {self.at}")
        return [self._closed(depth, outer)]

    def _capturing(self, depth: int) -> Node:
        self.groups += 1
        number = self.groups
        return Group(number, self._closed(depth, self.flags))

    def _closed(self, depth: int, outer: Flags) -> Node:
        node = self.choice(depth + 1)
        if not self.take_if(")"):
            raise PatternInvalid(f"Unclosed group near index {self.at}")
        self.flags = outer
        return node

    def _name(self) -> str:
        end = self.pattern.find(">", self.at)
        name = self.pattern[self.at : end]
        if end < 0 or not name.isascii() or not name.isalnum() or name[0].isdigit():
            raise PatternInvalid(f"named capturing group is missing trailing '>' near index {self.at}")
        self.at = end + 1
        return name

    def _read_flags(self, flags: Flags) -> Flags:
        switch_on = True
        while (letter := self.pattern[self.at : self.at + 1]) not in {"", ")", ":"}:
            if letter == "-" and switch_on:
                switch_on = False
            elif letter in _FLAGS:
                flags = replace(flags, **{_FLAGS[letter]: switch_on})
            else:
                raise PatternInvalid(f"Unknown inline modifier '{letter}' near index {self.at}")
            self.at += 1
        return flags

    def _escape(self) -> list[Node]:  # noqa: C901, PLR0912 - one case for each letter
        character = self.take()
        if character in sets.SHORTHANDS:
            return [One(sets.SHORTHANDS[character])]
        match character:
            case "Q":
                end = self.pattern.find("\\E", self.at)
                quoted = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
                self.at += len(quoted) + (0 if end < 0 else 2)
                return [self._literal(one) for one in quoted]
            case "b":
                return [At(Place.WORD_EDGE)]
            case "B":
                return [At(Place.NO_WORD_EDGE)]
            case "A":
                return [At(Place.START)]
            case "z":
                return [At(Place.END)]
            case "Z":
                return [At(Place.END_BEFORE_NEWLINE)]
            case "G":
                return [At(Place.SEARCH_START)]
            case "R":
                crlf = Sequence((self._literal("\r"), self._literal("\n")))
                return [Atomic(Choice((crlf, One(sets.SHORTHANDS["v"]))))]
            case "k":
                return [self._back_by_name()]
            case _ if character in "123456789":
                return [self._back(int(character))]
            case "p" | "P":
                return [One(self._property(character))]
            case _:
                return [self._literal(self._escaped_character(character))]

    def _back_by_name(self) -> Node:
        if not self.take_if("<") or (name := self._name()) not in self.names:
            raise PatternInvalid(f"\\k is not followed by a known '<name>' near index {self.at}")
        return Back(self.names[name], self.flags.any_case)

    def _back(self, number: int) -> Node:
        # More digits belong to it as long as there are that many groups.
        while (digit := self.pattern[self.at : self.at + 1]) and digit in "0123456789":
            if number * 10 + int(digit) > self.groups:
                break
            number = number * 10 + int(digit)
            self.at += 1
        return Back(number, self.flags.any_case)

    def _property(self, letter: str) -> CharSet:
        name = self.take()
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise PatternInvalid(f"Unclosed character family near index {self.at}")
            name = self.pattern[self.at : end]
            self.at = end + 1
        found = sets.property_named(name, any_case=self.flags.any_case)
        if found is None:
            raise PatternInvalid(f"Unknown character property name {{{name}}} near index {self.at}")
        return found if letter == "p" else sets.negated(found)

    def _escaped_character(self, character: str) -> str:
        match character:
            case "0":
                return self._octal()
            case "x":
                if self.take_if("{"):
                    return self._braced()
                return self._hexadecimal(2)
            case "u":
                return self._hexadecimal(4)
            case "c":
                return chr(ord(self.take()) ^ 64)
            case _ if character in _SIMPLE_ESCAPES:
                return _SIMPLE_ESCAPES[character]
            case _ if character.isascii() and character.isalpha():
                raise PatternInvalid(f"Illegal/unsupported escape sequence \\{character} near index {self.at - 1}")
            case _:
                return character

    def _octal(self) -> str:
        digits = ""
        while (digit := self.pattern[self.at : self.at + 1]) and digit in "01234567" and len(digits) < 3:
            if int(digits + digit, 8) > 0o377:
                break
            digits += digit
            self.at += 1
        if not digits:
            raise PatternInvalid("Illegal octal escape sequence")
        return chr(int(digits, 8))

    def _hexadecimal(self, length: int) -> str:
        digits = self.pattern[self.at : self.at + length]
        if len(digits) < length or not _HEX.issuperset(digits):
            raise PatternInvalid("Illegal hexadecimal escape sequence")
        self.at += length
        return chr(int(digits, 16))

    def _braced(self) -> str:
        end = self.pattern.find("}", self.at)
        digits = self.pattern[self.at : end]
        if end < 0 or not digits or len(digits) > 6 or not _HEX.issuperset(digits) or int(digits, 16) > 0x10FFFF:
            raise PatternInvalid("Illegal hexadecimal escape sequence")
        self.at = end + 1
        return chr(int(digits, 16))

    def _class(self, depth: int) -> CharSet:
        if depth > _DEPTH:
            raise PatternInvalid("The pattern is nested too deeply")
        negative = self.take_if("^")
        found: list[CharSet] = []
        left: CharSet | None = None
        first = True
        while True:
            character = self.take()
            if character == "]" and (not first or left is not None):
                break
            first = False
            if character == "&" and self.take_if("&"):
                left = self._joined(left, found)
                found = []
                continue
            found.append(self._class_part(character, depth))
        whole = self._joined(left, found)
        return sets.negated(whole) if negative else whole

    @staticmethod
    def _joined(left: CharSet | None, found: list[CharSet]) -> CharSet:
        if left is None:
            return sets.union(found) if len(found) != 1 else found[0]
        return sets.intersection(left, sets.union(found)) if found else left

    def _class_part(self, character: str, depth: int) -> CharSet:
        if character == "[":
            return self._class(depth + 1)
        if character == "\\":
            character = self.take()
            if character in sets.SHORTHANDS:
                return sets.SHORTHANDS[character]
            if character in "pP":
                return self._property(character)
            if character == "Q":
                end = self.pattern.find("\\E", self.at)
                quoted = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
                self.at += len(quoted) + (0 if end < 0 else 2)
                return sets.any_of(frozenset(quoted))
            character = self._escaped_character(character)
        return self._class_range(character)

    def _class_range(self, first: str) -> CharSet:
        ahead = self.pattern[self.at : self.at + 2]
        if len(ahead) == 2 and ahead[0] == "-" and ahead[1] not in "[]":
            self.at += 1
            last = self.take()
            if last == "\\":
                last = self._escaped_character(self.take())
            if last < first:
                raise PatternInvalid(f"Illegal character range near index {self.at}")
            found = sets.between(first, last)
        else:
            found = sets.one(first)
        return sets.any_case(found) if self.flags.any_case else found
