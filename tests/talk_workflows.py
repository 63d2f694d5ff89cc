"""The three workflows of the talk, as they were shown."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "data" / "talk"

FIRST, SECOND, THIRD = ((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in ("first", "second", "third"))
