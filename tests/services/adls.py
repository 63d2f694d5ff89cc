"""A temporary server of Azure's storage: Azurite from npm, on a free port of loopback."""

import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.services.process import folder_for, free_port, running

from calve.errors import EnvironmentUnfit
from calve.settings import Settings, load
from calve.testing.debian import on_path, program

VERSION = "3.37.0"
ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its documentation says."""
_ROOT = Path(__file__).parents[2]


@contextmanager
def throwaway_adls(container: str) -> Iterator[dict[str, str]]:
    """Start a server with one container; yield PyIceberg's properties to reach it.

    Raises:
        EnvironmentUnfit: it cannot be installed, or does not start.
    """
    from pyarrow.fs import AzureFileSystem

    port = free_port()
    with folder_for("adls") as folder:
        words = [
            *(str(_installed(load(_ROOT))), "--blobHost", "127.0.0.1", "--blobPort", str(port)),
            *("--silent", "--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry"),
        ]
        with running(words, port, folder / "log"):
            names = {f"{kind}_storage_authority": f"127.0.0.1:{port}" for kind in ("blob", "dfs")}
            names |= {f"{kind}_storage_scheme": "http" for kind in ("blob", "dfs")}
            AzureFileSystem(ACCOUNT, account_key=_KEY, **names).create_dir(container)
            told = {f"adls.{name.replace('_', '-')}": text for name, text in names.items()}
            yield told | {"adls.account-key": _KEY}


def _installed(settings: Settings) -> Path:
    """Return the program; it is installed the first time, beside Spark's jars."""
    cache = settings.spark.jars_cache.parent
    folder = cache / f"azurite-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "azurite.lock").open("w") as lock:  # tests run in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(folder)
    return folder / "node_modules" / ".bin" / "azurite-blob"


def _install(folder: Path) -> None:
    npm = program(partial(on_path, "npm"), "npm")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        made = Path(place) / "made"
        command = [str(npm), "install", "--no-audit", "--no-fund", "--prefix", str(made), f"azurite@{VERSION}"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode:
            raise EnvironmentUnfit(f"npm cannot install azurite: {said.stderr.strip()}")
        made.rename(folder)
