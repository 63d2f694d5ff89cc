"""Fresh names: those that people type, and those that databases keep."""

import secrets

from calve.app.clocks import now_ms

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def new_id() -> str:
    """Return a fresh random name, short enough to type and free of look-alikes."""
    return "".join(secrets.choice(_LETTERS) for _ in range(8))


def new_uuid() -> str:
    """Return a fresh uuid of version 7: ids of one moment lie together, which databases like."""
    value = now_ms() << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
