"""What a server needs to let somebody in."""

from dataclasses import dataclass

from calve.access import Door, Office, Rate
from calve.access.oidc import Provider
from calve.api.access.origins import Rules


@dataclass(frozen=True, slots=True)
class Entrance:
    """All that it takes to let somebody in."""

    door: Door
    office: Office
    rules: Rules
    rate: Rate
    provider: Provider | None = None
    """Of identities, if people sign in elsewhere."""
