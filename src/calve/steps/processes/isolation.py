"""Isolates the programs of steps from the worker and from each other: environment variables, users, a sandbox.

docs/explain/access.md lists the boundary that each setting gives.
"""

import grp
import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from calve.environment import PREFIX
from calve.errors import EnvironmentUnfit, SettingsInvalid
from calve.namespaces import ROOT, covers, namespace_of
from calve.settings import FILE, Settings
from calve.steps.failures import fatal

VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("PYSPARK_PYTHON", "AWS_REGION", "AWS_DEFAULT_REGION", "XDG_CACHE_HOME"),
)
"""The environment variables that programs inherit from the worker; none of them holds a secret."""
EVERYWHERE = "*"
"""Stands for all namespaces in ``worker.run_as``."""
BUBBLEWRAP = "bwrap"
_OWN = ("/tmp", "/run")  # noqa: S108 - not to write there
"""The folders that each sandbox replaces by its own."""
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where /etc/resolv.conf may link to."""


def allowed(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that programs may have: those in ``VARIABLES``, and those that match ``more``."""
    patterns = (*VARIABLES, *more)
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(PREFIX) and any(fnmatchcase(name, pattern) for pattern in patterns)
    }


@dataclass(frozen=True, slots=True)
class SystemUser:
    """A user of this machine that programs run as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that name the user."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A bubblewrap sandbox: hides calve's state, other attempts and other processes."""

    program: str
    hidden: Sequence[Path]
    """Files and folders to hide."""
    readable: Sequence[Path]
    """Folders below those that a sandbox replaces which programs need to read."""
    writable: Sequence[Path] = ()

    def command(self, folder: Path, cwd: Path, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the command line that runs a program in the sandbox; it may write to one folder."""
        temporary = folder / "tmp"
        temporary.mkdir(mode=0o700, exist_ok=True)
        options = [
            *("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--bind", str(temporary), "/tmp", "--tmpfs", "/run"),  # noqa: S108 - the sandbox's own
        ]
        options += [word for path in _RESOLVERS for word in ("--ro-bind-try", path, path)]
        options += [word for path in self.readable for word in ("--ro-bind-try", str(path), str(path))]
        options += [word for path in self.hidden for word in _hiding(path)]
        options += [word for path in self.writable for word in ("--bind-try", str(path), str(path))]
        options += ["--bind", str(folder), str(folder), "--chdir", str(cwd), "--"]
        return (self.program, *options, *argv)


def _hiding(path: Path) -> tuple[str, ...]:
    if path.is_dir():
        return ("--tmpfs", str(path))
    return ("--ro-bind", "/dev/null", str(path)) if path.exists() else ()


@dataclass(frozen=True, slots=True)
class Isolation:
    """How programs are isolated."""

    users: Mapping[str, SystemUser] = field(default_factory=dict)
    """The users that programs run as, by namespace, including the namespaces below it; empty: the worker's user."""
    sandbox: Sandbox | None = None

    def user_of(self, workflow_id: str) -> SystemUser | None:
        """Return the user that the programs of a workflow run as; None for the worker's user.

        Raises:
            StepFailed: worker.run_as names users, but none for this workflow.
        """
        if not self.users:
            return None
        namespace = namespace_of(workflow_id)
        covering = [name for name in self.users if covers(ROOT if name == EVERYWHERE else name, namespace)]
        if not covering:
            raise fatal(
                f"worker.run_as names no user for the programs of {workflow_id}.",
                remedy=f"Add one to worker.run_as: for {namespace or EVERYWHERE}, or for {EVERYWHERE}.",
            )
        return self.users[max(covering, key=lambda name: (name != EVERYWHERE, len(name)))]


def load_isolation(settings: Settings) -> Isolation:
    """Return the isolation that the settings define.

    Raises:
        EnvironmentUnfit: this process may not change its user, or bubblewrap is not installed.
        SettingsInvalid: there is no such user.
    """
    return Isolation(
        {namespace: _user(name) for namespace, name in settings.worker.run_as.items()}, load_sandbox(settings)
    )


def load_sandbox(settings: Settings) -> Sandbox | None:
    """Return the sandbox if the settings enable it.

    Raises:
        EnvironmentUnfit: bubblewrap is not installed.
    """
    if settings.worker.sandbox == "none":
        return None
    program = shutil.which(BUBBLEWRAP)
    if program is None:
        raise EnvironmentUnfit(
            "worker.sandbox is bubblewrap, and the program bwrap is not on PATH.",
            remedy="Install it (on Debian: apt-get install bubblewrap), or set worker.sandbox to none.",
        )
    package = Path(__file__).parents[3]  # outside the other folders if calve is installed as editable
    needed = dict.fromkeys((settings.project, Path(sys.prefix), Path(sys.base_prefix), package))
    readable = [path for path in needed if any(path.is_relative_to(folder) for folder in _OWN)]
    writable = [settings.project / Path(path).expanduser() for path in settings.worker.sandbox_writable]
    return Sandbox(program, hidden_paths(settings), readable, writable)


def hidden_paths(settings: Settings) -> list[Path]:
    """Return the files and folders that hold calve's state and secrets."""
    from sqlalchemy import make_url

    store = make_url(settings.store.url)
    files = [Path(store.database)] if store.get_backend_name() == "sqlite" and store.database else []
    state_files = [file.with_name(f"{file.name}{suffix}") for file in files for suffix in ("", "-wal", "-shm")]
    folders = [settings.home] if not settings.project.is_relative_to(settings.home) else []
    kept = settings.secret_store
    more = [settings.project / FILE, kept.key_file, *([kept.folder] if kept.folder else [])]
    outside = [path for path in (*state_files, *more) if not any(path.is_relative_to(each) for each in folders)]
    return [*folders, *outside]


def _user(name: str) -> SystemUser:
    if os.geteuid() != 0:
        raise EnvironmentUnfit(
            "worker.run_as names other users, and only root may run programs as another user.",
            remedy="Run the worker as root, or leave worker.run_as out.",
        )
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise SettingsInvalid(f"worker.run_as names the user {name}, who does not exist on this machine.") from None
    if found.pw_uid == 0:
        raise SettingsInvalid(f"worker.run_as names {name}, who is root, so steps would not be isolated.")
    groups = tuple(group.gr_gid for group in grp.getgrall() if name in group.gr_mem)
    return SystemUser(name, found.pw_uid, found.pw_gid, groups, found.pw_dir)
