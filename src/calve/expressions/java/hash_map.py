"""A map that iterates in the order of ``java.util.HashMap``, and whose keys can change."""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

_FIRST_CAPACITY = 16
_MASK = 0xFFFF_FFFF


class Key(Protocol):
    """An object that holds a text or None."""

    val: str | None


KeyT = TypeVar("KeyT", bound=Key)
ValueT = TypeVar("ValueT")


class HashMap(Generic[KeyT, ValueT]):
    """A map from keys that contain a text; a key is stored under the text that it contained when it was put.

    A key that has changed since stays in its place: neither the old nor the new text finds it until it changes back.
    """

    __slots__ = ("_entries", "_places")

    def __init__(self) -> None:
        self._entries: list[tuple[str | None, KeyT, ValueT]] = []
        self._places: dict[str | None, list[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, text: str | None) -> ValueT | None:
        """Return the value, or None."""
        place = self._find(text)
        return None if place is None else self._entries[place][2]

    def put(self, key: KeyT, value: ValueT) -> ValueT | None:
        """Set the value and return the previous one, or None; the first key is kept."""
        text = key.val
        place = self._find(text)
        if place is None:
            self._places.setdefault(text, []).append(len(self._entries))
            self._entries.append((text, key, value))
            return None
        first, old_key, old = self._entries[place]
        self._entries[place] = (first, old_key, value)
        return old

    def items(self) -> Iterator[tuple[KeyT, ValueT]]:
        """Yield keys and values in Java's order."""
        for place in hash_order([text for text, _, _ in self._entries]):
            _, key, value = self._entries[place]
            yield key, value

    def _find(self, text: str | None) -> int | None:
        for place in self._places.get(text, ()):
            if self._entries[place][1].val == text:
                return place
        return None


def hash_order(texts: list[str | None]) -> list[int]:
    """Return the indexes of ``texts``, put in this order, in the order in which a HashMap iterates."""
    capacity = _FIRST_CAPACITY
    while len(texts) > capacity * 3 // 4:
        capacity *= 2
    # The same long text may occur many times.
    buckets = {text: _spread(text) & (capacity - 1) for text in set(texts)}
    # Within a bucket entries stay in the order of insertion: growing splits a bucket, but keeps the order.
    return sorted(range(len(texts)), key=lambda index: buckets[texts[index]])


def _spread(text: str | None) -> int:
    code = string_hash(text) if text is not None else 0
    return code ^ (code >> 16)


def string_hash(text: str) -> int:
    """Return the low 32 bits of Java's hash of ``text``, without a sign."""
    code = 0
    for character in text:
        code = (code * 31 + ord(character)) & _MASK
    return code
