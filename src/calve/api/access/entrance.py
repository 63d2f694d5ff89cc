"""What a server needs to let somebody in."""

from dataclasses import dataclass, field
from functools import partial

from calve.access import Door, Office, Rate
from calve.access.oidc import Provider
from calve.api.access.origins import Rules
from calve.api.threads import FairThreads


@dataclass(frozen=True, slots=True)
class Entrance:
    """All that it takes to let somebody in."""

    door: Door
    office: Office
    rules: Rules
    rate: Rate
    provider: Provider | None = None
    """Of identities, if people sign in elsewhere."""
    passwords: FairThreads = field(default_factory=partial(FairThreads, 2))
    """What checks passwords, which takes time and memory: one at a time for each address."""
