"""Fetch the third-party scripts and style sheets of the web UI that vendor.json lists, and verify them.

``make vendor`` packs each package of npm in the version that is listed, copies the listed files, and writes their
hashes; ``--check`` only compares what is there.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "src" / "calve" / "web" / "static" / "vendor"
LIST = FOLDER / "vendor.json"


def listed() -> list[dict[str, Any]]:
    """Return the packages that are vendored."""
    packages: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))
    return packages


def digest(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(package: dict[str, Any]) -> None:
    """Copy the files of a package out of npm, and note their hashes."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{package['name']}@{package['version']}"
        command = ["npm", "pack", "--silent", name]
        packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as archive:
            for file in package["files"]:
                member = archive.extractfile(f"package/{file['source']}")
                assert member is not None, file["source"]  # noqa: S101 - vendor.json names files of the package
                (FOLDER / file["path"]).write_bytes(member.read())
                file["sha256"] = digest(FOLDER / file["path"])


def differing() -> list[str]:
    """Return the files that are not those whose hashes are listed, or not listed at all."""
    wanted = {file["path"]: file["sha256"] for package in listed() for file in package["files"]}
    found = {path.name: digest(path) for path in FOLDER.iterdir() if path != LIST}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def main() -> None:
    """Fetch what is listed, or check it."""
    if "--check" not in sys.argv:
        packages = listed()
        for package in packages:
            fetch(package)
        LIST.write_text(json.dumps(packages, indent=2) + "\n", encoding="utf-8")
    if wrong := differing():
        sys.exit(f"These files are not those of vendor.json: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
