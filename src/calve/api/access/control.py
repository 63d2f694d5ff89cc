"""The parts that a server needs to recognize callers."""

from dataclasses import dataclass, field
from functools import partial

from calve.access import Accounts, Authenticator, Provider, Rate
from calve.api.access.origins import Rules
from calve.api.threads import FairThreads


@dataclass(frozen=True, slots=True)
class AccessControl:
    """Accounts, authentication, rate limit, and the rules about hosts and origins."""

    authenticator: Authenticator
    accounts: Accounts
    rules: Rules
    rate: Rate
    provider: Provider | None = None
    """The identity provider, if there is one."""
    passwords: FairThreads = field(default_factory=partial(FairThreads, 2))
    """Checks passwords, which takes time and memory: one at a time for each address."""
