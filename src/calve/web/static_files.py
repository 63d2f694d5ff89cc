"""Style sheets, scripts and pictures, served from memory at an address that changes with them.

Their addresses contain one hash of all files, so that browsers may cache them forever, and a script can import
another one by a relative path.
"""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from fastapi import Header
from starlette.exceptions import HTTPException
from starlette.responses import Response

from calve.api import Routes
from calve.operations import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file, as it is and compressed."""

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
    """Return the address of a file."""
    assert name in static_files(), name  # noqa: S101 - templates name files of this package
    return f"/static/{digest()}/{name}"


def elements() -> list[str]:
    """Return the addresses of the custom elements, which every page loads."""
    return [address(name) for name in static_files() if name.startswith("elements/") and name.endswith(".js")]


routes = Routes("pages", prefix="")


@routes.get("/static/{hash}/{name:path}", "static_file", PUBLIC, include_in_schema=False)
async def static_file(
    hash: str,  # noqa: A002 - what it is
    name: str,
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """Return a file; an address of another version gives the file of this one, which is then not to be kept."""
    file = static_files().get(name)
    if file is None:
        raise HTTPException(404)
    is_compressed = "gzip" in accept_encoding
    headers = {"Cache-Control": _FOR_EVER if hash == digest() else "no-cache", "Vary": "Accept-Encoding"}
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.compressed if is_compressed else file.content, headers=headers, media_type=file.media_type)
