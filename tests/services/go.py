"""Programs from the Go module proxy: built once, by the installed Go or Debian's, and cached beside Spark's jars."""

import fcntl
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from calve.errors import EnvironmentUnfit
from calve.settings import Settings
from calve.testing.debian import on_path, program


def built(settings: Settings, package: str, version: str) -> Path:
    """Return the program of a Go package; it is downloaded and built the first time, in a minute or two.

    Raises:
        EnvironmentUnfit: there is no Go, or the build failed.
    """
    cache = settings.spark.jars_cache.parent
    name = package.rpartition("/")[2]
    folder = cache / f"{name}-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:  # tests run in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _build(f"{package}@v{version}", folder)
    return folder / name


def _build(module: str, folder: Path) -> None:
    """Build in a temporary folder, then move it into place as a whole."""
    go = program(partial(on_path, "go"), "golang-go")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        target = Path(place) / "bin"
        environment = os.environ | {"GOBIN": str(target)}  # noqa: TID251 - handed on
        command = [str(go), "install", module]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if said.returncode:
            raise EnvironmentUnfit(
                f"go install {module} failed: {said.stderr.strip()}",
                remedy="Go downloads the module from GOPROXY: check the network, or set GOPROXY to a mirror.",
            )
        target.rename(folder)
