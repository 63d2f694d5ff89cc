"""Text as UTF-16 code units, one character each, which is how SEL counts, cuts and compares it."""

import re
import struct

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


def to_units(text: str) -> str:
    """Return ``text`` with every character beyond U+FFFF as its two surrogates."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(data) // 2}H", data)))


def from_units(units: str) -> str:
    """Return ordinary text: pairs of surrogates joined, and a ``?`` for each that has no partner."""
    if units.isascii() or not _SURROGATE.search(units):
        return units
    whole = _LONE.sub("?", units)
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def without_lone_surrogates(text: str) -> str:
    """Return ``text`` as it comes out of UTF-8: a surrogate that has no partner becomes a ``?``."""
    return text if text.isascii() else to_units(from_units(to_units(text)))
