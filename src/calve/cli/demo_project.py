"""The project in which the demo runs: each demo replaces it, and keeps it for inspection."""

import shutil
import socket
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from calve.errors import CalveError, StoreBusy

if TYPE_CHECKING:
    from calve.settings import ServerSettings, Settings

_STATE = "state.db"
_PORTS = 20
"""How many ports to try, starting with that of the settings."""


def clear(settings: "Settings") -> None:
    """Delete the project of an earlier demo, and create a new one.

    Raises:
        StoreBusy: a process still runs the workflows of the earlier demo.
    """
    from calve.store import open_store

    if (settings.home / _STATE).is_file():
        try:
            with open_store(settings.store.url) as store, store.hold_scheduler():
                pass
        except StoreBusy as error:
            raise StoreBusy(
                f"The last demo is still open: {error.message}", remedy="Stop that process (calve up) first."
            ) from error
        except CalveError:
            pass  # a broken database may be deleted
    shutil.rmtree(settings.home, ignore_errors=True)
    settings.home.mkdir(parents=True)
    (settings.home / "calve.toml").write_text('# The project of calve demo, which the next demo deletes.\nhome = "."\n')


def tidy(home: Path) -> None:
    """Delete everything but the report."""
    for found in home.iterdir():
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        elif found.suffix != ".html":
            found.unlink(missing_ok=True)


def view_of(settings: "Settings", page: str) -> dict[str, str] | None:
    """Return the command that serves the demo's project, and the address of a page on that server.

    None if variables of this environment would give the command another state database or other catalogs.
    """
    from calve.settings import load

    loaded = load(settings.home)
    if (loaded.store, loaded.catalogs) != (settings.store, settings.catalogs):
        return None
    server = loaded.server
    port = _free_port(server)
    chosen = f" --port {port}" if port != server.port else ""
    url = server.model_copy(update={"port": port}).local_url
    return {"command": f"calve -C {quote(str(settings.home))} up{chosen}", "url": url + page}


def _free_port(server: "ServerSettings") -> int:
    """Return the port of the settings, or the next free port if another server uses it."""
    first = server.port or type(server)().port
    for port in range(first, first + _PORTS):
        with suppress(OSError), closing(socket.create_server((server.host, port))):
            return port
    return first
