"""Check the packages in requirements.lock for known vulnerabilities, at osv.dev.

From the root of the repository: python scripts/audit.py [SERVICE]
Exits with 0 if there are none, 1 if there are some, and 2 if the service could not be asked.
"""

import json
import sys
import urllib.error
import urllib.request

from sbom import LOCK, Package, packages_of

SERVICE = "https://api.osv.dev"
_SECONDS = 30
NONE, SOME, UNKNOWN = 0, 1, 2


def vulnerabilities(packages: list[Package], service: str) -> dict[str, list[str]]:
    """Return the ids of the known vulnerabilities of each package that has some.

    Raises:
        OSError: the service cannot be reached.
        ValueError: it answers something else.
    """
    asked = [
        {"package": {"ecosystem": "PyPI", "name": package.name}, "version": package.version} for package in packages
    ]
    request = urllib.request.Request(  # noqa: S310 - whoever runs this says where
        f"{service}/v1/querybatch", json.dumps({"queries": asked}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - the same
        results = json.load(answer).get("results", [])
    if len(results) != len(packages):
        raise ValueError(f"it answered about {len(results)} of {len(packages)} packages")
    found = zip(packages, results, strict=True)
    return {package.purl: [one["id"] for one in result["vulns"]] for package, result in found if result.get("vulns")}


def main(arguments: list[str]) -> int:
    """Say what is known; return the exit code."""
    service, packages = (arguments or [SERVICE])[0], packages_of(LOCK)
    try:
        found = vulnerabilities(packages, service)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        sys.stderr.write(f"{service} could not be asked: {reason}. NOTHING was checked; try again with the internet.\n")
        return UNKNOWN
    for purl, ids in found.items():
        sys.stdout.write(f"{purl}: {', '.join(ids)}\n")
    sys.stdout.write(f"{len(packages)} packages, {len(found)} with known vulnerabilities.\n")
    return SOME if found else NONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
