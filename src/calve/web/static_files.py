"""Style sheets, scripts and pictures, served from memory at an address that changes with them.

Their addresses contain one hash of all files, so that browsers may cache them forever, and a script can import
another one by a relative path.
"""

import gzip
import json
import logging
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from fastapi import Header
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from calve.api import Routes
from calve.operations import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOG = logging.getLogger(__name__)
FOLDER = Path(__file__).parent / "static"
TEMPLATES = Path(__file__).parent / "templates"
_NAMED = re.compile(r"""\bstatic\('([^']+)'\)""")
_IMPORTED = re.compile(r"""\bfrom "\./([^"]+)";""")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file, uncompressed and compressed."""

    media_type: str
    content: bytes
    compressed: bytes


@cache
def static_files() -> "Mapping[str, StaticFile]":
    """Return all files by their path below ``static``."""
    found = sorted(path for path in FOLDER.rglob("*") if path.suffix in _TYPES)
    return MappingProxyType({path.relative_to(FOLDER).as_posix(): _read(path) for path in found})


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(_TYPES[path.suffix], content, gzip.compress(content, mtime=0))


@cache
def digest() -> str:
    """Return a hash of the content of all files."""
    whole = sha256()
    for name, file in static_files().items():
        whole.update(name.encode() + b"\0" + file.content)
    return whole.hexdigest()[:16]


def address(name: str) -> str:
    """Return the address of a file. The file need not exist: pages are served even if files are missing."""
    return f"/static/{digest()}/{name}"


def elements() -> list[str]:
    """Return the addresses of the custom elements, which every page loads."""
    return [address(name) for name in static_files() if name.startswith("elements/") and name.endswith(".js")]


def missing() -> list[str]:
    """Return the files that templates, scripts or ``vendor.json`` refer to, and that do not exist."""
    named = {name for path in TEMPLATES.rglob("*.html") for name in _NAMED.findall(path.read_text(encoding="utf-8"))}
    scripts = (name for name in static_files() if name.startswith("elements/"))
    texts = (static_files()[name].content.decode() for name in scripts)
    named |= {f"elements/{name}" for text in texts for name in _IMPORTED.findall(text)}
    listed = static_files().get("vendor/vendor.json")
    packages = json.loads(listed.content) if listed else []
    named |= {"vendor/vendor.json", *(f"vendor/{file['path']}" for one in packages for file in one["files"])}
    return sorted(named - static_files().keys())


def warn() -> None:
    """Log which files are missing, for example because the package was built or copied incompletely."""
    if found := missing():
        _LOG.warning(
            "The web UI does not work as it should: %s missing in %s. Reinstall it with "
            "pip install --force-reinstall --no-deps calve",
            ", ".join(found) + (" is" if len(found) == 1 else " are"),
            FOLDER,
        )


routes = Routes("pages", prefix="")


@routes.get("/static/{hash}/{name:path}", "static_file", PUBLIC, include_in_schema=False)
async def static_file(
    hash: str,  # noqa: A002 - what it is
    name: str,
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """Return a file; unless the hash in the address is the current one, the response is ``no-cache``."""
    file = static_files().get(name)
    if file is None:
        raise HTTPException(404)
    is_compressed = "gzip" in accept_encoding
    headers = {"Cache-Control": _FOR_EVER if hash == digest() else "no-cache", "Vary": "Accept-Encoding"}
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.compressed if is_compressed else file.content, headers=headers, media_type=file.media_type)


@routes.get("/favicon.ico", "favicon", PUBLIC, include_in_schema=False)
async def favicon() -> Response:
    """Redirect to the icon, for browsers that request it at this well-known path."""
    return RedirectResponse(address("icon.svg"))
