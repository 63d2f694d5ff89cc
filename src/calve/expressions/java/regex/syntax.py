"""The syntax of Java's regular expressions, translated to that of the ``regex`` package.

Java's syntax is parsed completely and every part is translated, instead of relying on what the two dialects have in
common: anchors, line ends and letters of either case become sets and look-arounds.
"""

import re
from dataclasses import dataclass, replace

from calve.expressions.java.numbers import INT_MAX
from calve.expressions.java.regex.sets import DEPTH, SHORTHANDS, Flags, PatternInvalid, SetReader, quoted

LAST_END = "\1"
"""Stands for the end of the last match in a translated pattern; it is unambiguous, as other characters are quoted."""
_MOST_REPEATS = 1_000
_LARGEST_PATTERN = 20_000
"""The maximum length in characters with all repetitions expanded, because the ``regex`` package expands them."""
_LINE_ENDS = r"\n\r\x85\u2028\u2029"
_WORD = r"[\p{L}\p{Nd}_]"
_AFTER_WORD = r"(?<=_|[\p{L}\p{Nd}]\p{Mn}*)"
_BEFORE_WORD = rf"(?={_WORD}|\p{{Mn}}(?<=[\p{{L}}\p{{Nd}}]\p{{Mn}}+))"
_WORD_EDGE = rf"(?:{_AFTER_WORD}(?!{_BEFORE_WORD})|(?<!{_AFTER_WORD}){_BEFORE_WORD})"
_LAST_LINE_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_ANCHORS = {"A": r"\A", "z": r"\Z", "b": _WORD_EDGE, "B": f"(?!{_WORD_EDGE})", "G": LAST_END}
UNSURE = "A reference to a group in a negative look-ahead, or a look-behind of varying length, is not supported"


@dataclass(frozen=True, slots=True)
class Translation:
    """A pattern in the syntax of the ``regex`` package, except ``LAST_END``."""

    source: str
    literal: str | None
    """The text that the pattern matches, if it is a plain text."""
    groups: int
    names: dict[str, int]
    unsure: frozenset[int]
    """The groups whose content may differ from Java's."""
    is_ascii_only: bool
    """Whether it is equivalent to Java's pattern in ASCII texts only."""
    weight: int
    """An estimate of the memory that a search needs for each character of the text."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern, with the fewest and the most characters that it matches, and its size with repetitions.

    As in Java, an unbounded length counts as 2^31 - 1: so a look-behind may consist of a single unbounded part.
    """

    source: str
    shortest: int = 0
    longest: int = 0
    size: int = 1
    literal: str | None = None


def translate(pattern: str) -> Translation:
    """Translate a Java pattern.

    Raises:
        PatternInvalid: the pattern is invalid, or is not supported.
    """
    translator = _Translator(pattern)
    whole = translator.choice(0)
    if translator.at < len(pattern):
        raise PatternInvalid(f"Unmatched closing ')' near index {translator.at}")
    if whole.size > _LARGEST_PATTERN:
        raise PatternInvalid("The pattern has too many repetitions in it")
    if translator.referenced & translator.unsure:
        raise PatternInvalid(UNSURE)

    def reference(mark: re.Match[str]) -> str:
        return f"(?:\\{mark[1]})" if int(mark[1]) <= translator.groups else "(?!)"

    return Translation(
        re.sub("\0([0-9]+)\0", reference, whole.source),
        whole.literal,
        translator.groups,
        translator.names,
        frozenset(translator.unsure),
        translator.is_ascii_only,
        1 + translator.repeated_groups,
    )


class _Translator(SetReader):
    """Translates a pattern from the left."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.groups = 0
        self.names: dict[str, int] = {}
        self.repeated_groups = 0
        self.atomic_parts = 0
        self.is_ascii_only = False
        self.referenced: set[int] = set()
        self.unsure: set[int] = set()

    def choice(self, depth: int) -> _Part:
        if depth > DEPTH:
            raise PatternInvalid("The pattern is nested too deeply")
        options = [self._sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            options.append(self._sequence(depth))
        if len(options) == 1:
            return options[0]
        return _Part(
            "|".join(option.source for option in options),
            min(option.shortest for option in options),
            max(option.longest for option in options),
            sum(option.size for option in options),
        )

    def _sequence(self, depth: int) -> _Part:
        parts: list[_Part] = []
        while (character := self.peek()) and character not in "|)":
            groups = self.groups
            atoms = self._atoms(depth)
            if atoms:
                atoms[-1] = self._repeated(atoms[-1], self.groups - groups)
            parts.extend(atoms)
        literals = [part.literal for part in parts if part.literal is not None]
        return _Part(
            "".join(part.source for part in parts),
            sum(part.shortest for part in parts),
            sum(part.longest for part in parts),
            sum(part.size for part in parts),
            "".join(literals) if literals and len(literals) == len(parts) else None,
        )

    def _atoms(self, depth: int) -> list[_Part]:
        character = self.take()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return [_Part(self._cased(self.bracketed(depth)), 1, 1)]
            case ".":
                return [_Part("(?s:.)" if self.flags.s else r"[^\n]" if self.flags.d else f"[^{_LINE_ENDS}]", 1, 1)]
            case "^":
                return [_Part(self._line_start())]
            case "$":
                return [_Part(self._line_end())]
            case "*" | "+" | "?":
                raise PatternInvalid(f"Dangling meta character '{character}' near index {self.at - 1}")
            case "{":
                # A quantifier without an operand repeats an empty part; the caller checks its syntax next.
                self.at -= 1
                return [_Part("(?:)")]
            case "\\":
                return self._escape()
            case _:
                return [self._literal(character)]

    def _line_start(self) -> str:
        if not self.flags.m:
            return r"\A"
        ends = r"\n" if self.flags.d else r"[\n\x85\u2028\u2029]|\r(?!\n)"
        return rf"(?:\A|(?<={ends})(?!\Z))"

    def _line_end(self) -> str:
        if not self.flags.m:
            return r"(?=\n?\Z)" if self.flags.d else _LAST_LINE_END
        return r"(?=\n|\Z)" if self.flags.d else r"(?=\Z|(?<!\r)\n|[\r\x85\u2028\u2029])"

    def _literal(self, character: str) -> _Part:
        source = quoted(character)
        if self.flags.i and self.flags.u:
            source = self._cased(source)
        elif self.flags.i and character.isascii() and character.isalpha():
            source = f"[{character}{character.swapcase()}]"
        return _Part(source, 1, 1, literal=None if self.flags.i else character)

    def _cased(self, source: str) -> str:
        """Return a set that matches letters of either case in every alphabet, if the flags ask for it."""
        return f"(?i-f:{source})" if self.flags.i and self.flags.u else source

    def _repeated(self, part: _Part, groups: int) -> _Part:
        match self.peek():
            case "*":
                least, most, count = 0, None, "*"
            case "+":
                least, most, count = 1, None, "+"
            case "?":
                least, most, count = 0, 1, "?"
            case "{":
                least, most = self._bounds()
                count = f"{{{least},{'' if most is None else most}}}"
            case _:
                return part
        self.at += 1
        greed = "?" if self.take_if("?") else "+" if self.take_if("+") else ""
        if most != 1:
            self.repeated_groups += groups
        if greed == "+":
            self.atomic_parts += 1
        longest = part.longest * (INT_MAX if most is None else most)
        size = part.size * max(1, least, most or 0)
        return _Part(f"{part.source}{count}{greed}", part.shortest * least, longest, size)

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

    def _group(self, depth: int) -> list[_Part]:
        outer = self.flags
        if not self.take_if("?"):
            return [self._capturing(depth)]
        for opening in ("=", "!", "<=", "<!"):
            if self.take_if(opening):
                return [self._look(depth, opening)]
        for opening in (":", ">"):
            if self.take_if(opening):
                self.atomic_parts += opening == ">"
                return [self._closed(depth, f"(?{opening}", outer)]
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
        return [self._closed(depth, "(?:", outer)]

    def _capturing(self, depth: int) -> _Part:
        self.groups += 1
        return self._closed(depth, "(", self.flags)

    def _look(self, depth: int, opening: str) -> _Part:
        groups, referenced, atomic_parts = self.groups, frozenset(self.referenced), self.atomic_parts
        inner = self._closed(depth, f"(?{opening}", self.flags)
        inside = set(range(groups + 1, self.groups + 1))
        if opening.startswith("<") and inner.longest > INT_MAX:
            raise PatternInvalid(f"Look-behind group does not have an obvious maximum length near index {self.at}")
        if opening == "!":
            # After a negative look-ahead, Java's groups may keep text from failed tries; inside, both agree.
            self.referenced -= inside - referenced
            self.unsure |= inside
        elif opening.startswith("<") and inner.shortest != inner.longest:
            # Java tries every start, regex matches backwards: they agree on whether it matches, not on the groups.
            if self.atomic_parts > atomic_parts:
                raise PatternInvalid("A possessive part in a look-behind of varying length is not supported")
            self.unsure |= inside
        return _Part(f"(?:{inner.source})", size=inner.size)

    def _closed(self, depth: int, opening: str, outer: Flags) -> _Part:
        inner = self.choice(depth + 1)
        if not self.take_if(")"):
            raise PatternInvalid(f"Unclosed group near index {self.at}")
        self.flags = outer
        return replace(inner, source=f"{opening}{inner.source})", literal=None)

    def _name(self) -> str:
        name = self.take_until(">")
        if not name or not name.isascii() or not name.isalnum() or name[0].isdigit():
            raise PatternInvalid(f"named capturing group is missing trailing '>' near index {self.at}")
        return name

    def _read_flags(self, flags: Flags) -> Flags:
        switch_on = True
        while (letter := self.pattern[self.at : self.at + 1]) not in {"", ")", ":"}:
            if letter == "-" and switch_on:
                switch_on = False
            elif letter in Flags.__slots__:
                flags = replace(flags, **{letter: switch_on})
            else:
                raise PatternInvalid(f"Unknown inline modifier '{letter}' near index {self.at}")
            self.at += 1
        return flags

    def _escape(self) -> list[_Part]:
        character = self.take()
        if character in _ANCHORS:
            return [_Part(_ANCHORS[character])]
        match character:
            case "Q":
                return [self._literal(one) for one in self.quotation()]
            case "Z":
                return [_Part(r"(?=\n?\Z)" if self.flags.d else _LAST_LINE_END)]
            case "R":
                return [_Part(rf"(?>\r\n|{SHORTHANDS['v']})", 1, 2)]
            case "k":
                return [self._reference(self._named_group())]
            case _ if character in "123456789":
                return [self._reference(self._group_number(int(character)))]
            case _:
                found = self.set_escape(character)
                return [_Part(found, 1, 1) if found else self._literal(self.escaped_character(character))]

    def _named_group(self) -> int:
        if not self.take_if("<") or (name := self._name()) not in self.names:
            raise PatternInvalid(f"\\k is not followed by a known '<name>' near index {self.at}")
        return self.names[name]

    def _group_number(self, number: int) -> int:
        # More digits belong to it as long as there are that many groups.
        while (digit := self.pattern[self.at : self.at + 1]) and digit in "0123456789":
            if number * 10 + int(digit) > self.groups:
                break
            number = number * 10 + int(digit)
            self.at += 1
        return number

    def _reference(self, number: int) -> _Part:
        self.referenced.add(number)
        # Only at the end of the pattern is it known whether this group exists.
        if not self.flags.i:
            return _Part(f"\0{number}\0", 0, INT_MAX + 1)
        self.is_ascii_only = self.is_ascii_only or not self.flags.u
        return _Part(f"(?i-f:\0{number}\0)", 0, INT_MAX + 1)
