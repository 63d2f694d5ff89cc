"""Access control for tests, with a clock that tests set."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from calve.access import LOOPBACK, AccessState, Accounts, Actor, Authenticator, Rate, parse_grants
from calve.api.access import AccessControl, rules
from calve.settings import AccessSettings

PASSWORD = "correct horse battery"
HOUR = 3_600_000
LOCAL = Actor(LOOPBACK, "cli")


@dataclass
class AccessSetup:
    """Accounts and authentication on one state, with a clock that tests set."""

    state: AccessState
    now: int = 1_800_000_000_000
    authenticator: Authenticator = field(init=False)
    accounts: Accounts = field(init=False)

    def __post_init__(self) -> None:
        self.authenticator = Authenticator(self.state, lambda: self.now, secrets.token_bytes, 12 * HOUR)
        self.accounts = Accounts(self.state, lambda: self.now, secrets.token_bytes)

    def acts(self) -> list[tuple[str, str, str]]:
        """Return who did what with which result, in order."""
        return [(one.act.who, one.act.action, one.act.result) for one in self.state.entries()]

    def control(self, **given: Any) -> AccessControl:
        """Return the access control of a server; everyone must sign in, unless the settings say otherwise."""
        settings = AccessSettings(**{"required": True, "requests_per_second": 100_000, **given})
        return AccessControl(
            self.authenticator,
            self.accounts,
            rules(settings, "127.0.0.1"),
            Rate(settings.requests_per_second, lambda: self.now / 1_000),
        )

    def token(self, *grants: str, life: int | None = None) -> str:
        """Return a token with these grants."""
        return self.accounts.create_token("test", parse_grants(grants), LOCAL, life=life)[0]

    def forget_failures(self) -> None:
        """Forget all mistakes, so that nobody has to wait."""
        self.authenticator.backoff._tries.clear()
        for each in (
            self.authenticator.sign_ins._own,
            self.authenticator.sign_ins._addresses,
            self.authenticator.sign_ins._names,
        ):
            each._tries.clear()


def bearer(token: str) -> dict[str, str]:
    """Return the header with a token."""
    return {"authorization": f"Bearer {token}"}
