"""Access for tests: its clock is moved by hand."""

import secrets
from dataclasses import dataclass, field

from calve.access import LOOPBACK, By, Door, Office
from calve.access.ports import AccessState

PASSWORD = "correct horse battery"
HOUR = 3_600_000
LOCAL = By(LOOPBACK, "cli")


@dataclass
class Gatehouse:
    """A door and an office on one state, with a clock."""

    state: AccessState
    now: int = 1_800_000_000_000
    door: Door = field(init=False)
    office: Office = field(init=False)

    def __post_init__(self) -> None:
        self.door = Door(self.state, lambda: self.now, secrets.token_bytes, 12 * HOUR)
        self.office = Office(self.state, lambda: self.now, secrets.token_bytes)

    def acts(self) -> list[tuple[str, str, str]]:
        """Return who did what with which result, in order."""
        return [(one.act.who, one.act.action, one.act.result) for one in self.state.entries()]
