"""Write a bill of materials (CycloneDX): every package in requirements.lock, with the hashes of its files.

From the root of the repository: python scripts/sbom.py [OUTPUT]
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
INSTALLED = ROOT / "deploy" / "requirements.lock"
"""What of it is needed to run calve; the rest is for development."""
_PIN = re.compile(r"^([a-z0-9._-]+)==([^\s;\\]+)(?: ; (.*?))?(?: \\)?$")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a lock file pins."""

    name: str
    version: str
    marker: str
    """Where it is installed; everywhere, if it is empty."""
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its name in all registries."""
        return f"pkg:pypi/{self.name}@{self.version}"


def packages_of(lock: Path) -> list[Package]:
    """Return what a lock file pins."""
    return list(_packages(lock.read_text(encoding="utf-8").splitlines()))


def _packages(lines: list[str]) -> Iterator[Package]:
    pin: re.Match[str] | None = None
    hashes: list[str] = []
    for line in [*lines, "end==0"]:
        if found := _PIN.match(line):
            if pin is not None:
                yield Package(pin[1], pin[2], pin[3] or "", tuple(hashes))
            pin, hashes = found, []
        elif found := _HASH.match(line):
            hashes.append(found[1])


def document() -> dict[str, object]:
    """Return the bill of materials; the same for the same lock file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {package.name for package in packages_of(INSTALLED)}
    components = [_component(package, is_needed=package.name in needed) for package in packages_of(LOCK)]
    serial = uuid5(NAMESPACE_URL, json.dumps(components))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "calve",
                "name": project["name"],
                "version": _version(),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }


def _version() -> str:
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "src" / "calve" / "__init__.py").read_text(encoding="utf-8"))
    return found[1] if found else "0"


def _component(package: Package, *, is_needed: bool) -> dict[str, object]:
    marker = [{"name": "calve:marker", "value": package.marker}] if package.marker else []
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "scope": "required" if is_needed else "excluded",
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
        "properties": marker,
    }


def main(arguments: list[str]) -> None:
    """Write the bill of materials."""
    output = Path(arguments[0]) if arguments else ROOT / "dist" / "calve.cdx.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{output}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
