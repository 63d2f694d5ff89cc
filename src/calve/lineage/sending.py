"""Where events go: to a receiver over HTTP, to a file, or to both."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from calve.lineage.ports import Sender
from calve.settings import LineageSettings

if TYPE_CHECKING:
    from openlineage.client.transport.http import TokenProvider

SECONDS = 10.0


def senders_of(settings: LineageSettings, secret: Callable[[str], str]) -> list[Sender]:
    """Return those who take events by the settings; none, if lineage is off."""
    found: list[Sender] = []
    if settings.url is not None:
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        config = HttpConfig(
            settings.url, settings.endpoint, timeout=SECONDS, auth=_token(settings, secret), retry={"total": 0}
        )
        found.append(HttpTransport(config))
    if settings.file is not None:
        from openlineage.client.transport.file import FileConfig, FileTransport

        settings.file.parent.mkdir(parents=True, exist_ok=True)
        found.append(FileTransport(FileConfig(str(settings.file), append=True)))
    return found


def _token(settings: LineageSettings, secret: Callable[[str], str]) -> "TokenProvider":
    from openlineage.client.transport.http import ApiKeyTokenProvider, TokenProvider

    if settings.key_secret is None:
        return TokenProvider({})
    return ApiKeyTokenProvider({"api_key": secret(settings.key_secret)})
