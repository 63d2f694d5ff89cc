"""Checks of the boundaries around steps: whether they hold on this machine, by its settings and by trying them.

docs/explain/access.md explains what each boundary separates, and what happens without it.
"""

import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calve.errors import CalveError
from calve.settings import FILE, Settings


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary that separates steps from calve, or from each other."""

    name: str
    holds: bool
    detail: str
    remedy: str = ""


def boundaries_of(settings: Settings) -> Iterator[Boundary]:
    """Yield each boundary, and whether it holds.

    Raises:
        EnvironmentUnfit: the settings require a boundary that this machine cannot provide.
        SettingsInvalid: the settings name a user that does not exist.
    """
    from calve.steps import load_isolation

    isolation = load_isolation(settings)
    yield _state(settings)
    yield _file(settings)
    yield _environment(settings)
    yield _users(settings)
    if isolation.sandbox is None:
        told = "programs of steps can see all files and processes of their user"
        yield Boundary("sandbox", holds=False, detail=told, remedy="Set worker.sandbox to bubblewrap.")
    else:
        yield _tried(isolation.sandbox.program)
    yield _server(settings)


def _state(settings: Settings) -> Boundary:
    """Check that other users cannot read the state."""
    from calve.steps import hidden_paths

    kept = [path for path in (settings.home, *hidden_paths(settings)) if path != settings.project / FILE]
    allowed = 0o011 if settings.worker.run_as else 0
    opened = [str(path) for path in dict.fromkeys(kept) if path.exists() and _rights(path) & ~allowed]
    if not opened:
        return Boundary("state", holds=True, detail="only its owner can read the state, the database and the key")
    remedy = "As its owner, run: chmod go= FILE. calve does so at every start for files of its own user."
    return Boundary("state", holds=False, detail=f"others can read {', '.join(opened)}", remedy=remedy)


def _file(settings: Settings) -> Boundary:
    """Check that the settings file contains no password, because programs of steps can read the project."""
    file = settings.project / FILE
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if not any(password in text for password in _passwords(settings)):
        return Boundary("settings", holds=True, detail=f"{FILE} has no password of a database")
    if settings.worker.sandbox != "none" or (settings.worker.run_as and not _rights(file)):
        return Boundary("settings", holds=True, detail=f"programs of steps cannot read {FILE}")
    return Boundary(
        "settings",
        holds=False,
        detail=f"{FILE} has a password, and programs of steps can read it",
        remedy="Set the address with its variable (CALVE_STORE__URL, CALVE_CONNECTIONS__NAME) instead.",
    )


def _passwords(settings: Settings) -> Iterator[str]:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    for address in (settings.store.url, *settings.connections.values()):
        try:
            password: Any = make_url(address).password
        except (ArgumentError, ValueError):
            continue
        if password:
            yield str(password)
    yield from filter(None, [settings.secret_store.key, *settings.secrets.values()])


def _environment(settings: Settings) -> Boundary:
    added = ", ".join(settings.worker.environment)
    told = "programs of steps only get the variables of the list" + (f", and {added}" if added else "")
    wide = [name for name in settings.worker.environment if not name.strip("*?")]
    remedy = "Name the variables that steps need in worker.environment." if wide else ""
    return Boundary("environment", holds=not wide, detail=told, remedy=remedy)


def _users(settings: Settings) -> Boundary:
    users = settings.worker.run_as
    if not users:
        return Boundary(
            "users",
            holds=False,
            detail="programs of all namespaces run as the worker's user, and can read each other's files",
            remedy="Name users in worker.run_as, or set worker.sandbox to bubblewrap.",
        )
    told = ", ".join(f"{namespace} as {user}" for namespace, user in sorted(users.items()))
    shared = len(set(users.values())) < len(users)
    return Boundary(
        "users", holds=not shared, detail=f"programs run: {told}" + (", some share a user" if shared else "")
    )


def _tried(program: str) -> Boundary:
    """Try to create a sandbox."""
    options = ("--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true")
    said = subprocess.run([program, *options], capture_output=True, text=True, check=False)  # noqa: S603 - bubblewrap
    if said.returncode:
        raise CalveError(
            f"worker.sandbox is bubblewrap, but {program} cannot create a sandbox: {said.stderr.strip()}",
            remedy="Allow user namespaces on this machine, or run the worker as root.",
        )
    return Boundary("sandbox", holds=True, detail=f"programs of steps run in a sandbox ({program})")


def _server(settings: Settings) -> Boundary:
    if settings.access.required:
        return Boundary("server", holds=True, detail="programs of steps must sign in to the server, like all callers")
    return Boundary(
        "server",
        holds=False,
        detail="a server on a loopback address requires no sign-in, also not from programs of steps",
        remedy="Set access.required to true if steps are not trusted.",
    )


def _rights(path: Path) -> int:
    """Return the permissions of the group and of others."""
    return stat.S_IMODE(path.stat().st_mode) & 0o077
