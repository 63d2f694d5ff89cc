"""The report of a proof, to be sent to others: without secrets, host names and the places of files."""

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from calve import __version__
from calve.app import utc_now
from calve.conformance.model import Outcome, Proof
from calve.definition.params import HIDDEN
from calve.engine.worker import Mask
from calve.errors import JavaMissing
from calve.lake import java
from calve.settings import Settings

_HARMLESS = re.compile(r"true|false|\d{1,9}|rest|sql|hive|glue|jdbc|dynamodb|in-memory|sigv4|oauth2", re.IGNORECASE)
"""Values of properties that are shown."""
_SHORTEST = 4
"""Shorter values are not searched for in texts, except passwords: they are parts of too many words."""
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)[^\s'\"`,;)\]}]+")
_HOST = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|\b(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b"
    r"|\b(?:[\w-]+\.)+(?:com|net|org|io|dev|cloud|internal|local|lan|corp|example|test)\b(?!\.\w)",
    re.IGNORECASE,
)
"""Addresses of machines that no property names: those that a name was resolved to, or a server sent.

``java.net.ConnectException`` is none.
"""
_SECRET = re.compile("secret|password|token|key|credential", re.IGNORECASE)
"""Settings of Spark whose values are masked."""
_TOLD = frozenset({"detail", "remedy", "what", "why", "by_hand"})
"""The texts of a report that may quote a catalog."""
_BEARER = re.compile(r"\b(?P<kind>Bearer|Basic) +[\w.~+/=-]+", re.IGNORECASE)


def proof_document(proof: Proof, settings: Settings) -> dict[str, Any]:
    """Return the report as plain JSON."""
    catalog = settings.catalogs[proof.catalog]
    mask = _mask(settings, proof.catalog)
    return {
        "catalog": proof.catalog,
        "kind": catalog.kind,
        "properties": {name: _shown(value) for name, value in catalog.properties.items()},
        "spark_properties": {name: _shown(value) for name, value in catalog.spark.items()},
        "namespace": proof.namespace,
        "failed": proof.has_failed,
        "at": utc_now().isoformat(timespec="seconds"),
        "versions": _versions(settings, proof),
        "checks": [_masked(asdict(result), mask) for result in proof.results],
        "leftovers": [_masked(asdict(leftover), mask) for leftover in proof.leftovers],
    }


def proof_markdown(document: Mapping[str, Any]) -> str:
    """Return a report as a page in Markdown."""
    checks = document["checks"]
    counts = ", ".join(
        f"{count} {outcome.value}" for outcome in Outcome if (count := sum(c["outcome"] == outcome for c in checks))
    )
    parts = [
        f"# The catalog {document['catalog']}, proved by calve {document['versions']['calve']}",
        f"{document['at']}: {counts}.",
        _table(("check", "outcome", "seconds", "proves", "found"), [_row(check) for check in checks]),
        *_problems(checks),
        "## Environment",
        _table(("", ""), [(f"`{name}`", value) for name, value in document["versions"].items()]),
        f"Kind of catalog: {document['kind']}. Properties:",
        _table(("property", "value"), list(_properties(document))),
    ]
    return "\n\n".join(parts) + "\n"


def _row(check: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"`{check['check']}`",
        check["outcome"],
        f"{check['seconds']:.2f}",
        _cell(check["proves"]),
        _cell(check["detail"]),
    )


def _problems(checks: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a paragraph for each error."""
    told = [check for check in checks if check["code"]]
    if told:
        yield "## Errors"
    for check in told:
        remedy = f" {check['remedy']}" if check["remedy"] else ""
        yield f"**{check['check']}** (`{check['code']}`): {check['detail']}{remedy}"


def _properties(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in document["properties"].items():
        yield f"`{name}`", f"`{value}`"
    for name, value in document["spark_properties"].items():
        yield f"`spark.{name}`", f"`{value}`"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _versions(settings: Settings, proof: Proof) -> dict[str, str]:
    """Return the versions of everything that takes part."""
    return {
        "calve": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "pyiceberg": _version_of("pyiceberg"),
        "pyarrow": _version_of("pyarrow"),
        "pyspark": _version_of("pyspark"),
        "spark": proof.spark_version or "did not take part",
        "iceberg": "that of the Spark server" if settings.spark.remote else settings.spark.iceberg,
        "java": _java(settings),
    }


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _java(settings: Settings) -> str:
    try:
        return java.find(settings.spark.java_home).version
    except JavaMissing:
        return "not found"


def _shown(value: str) -> str:
    """Return the value of a property without anything that identifies a lake or its users."""
    if _HARMLESS.fullmatch(value):
        return value
    scheme, separator, _ = value.partition("://")
    return f"{scheme}://{HIDDEN}" if separator and re.fullmatch(r"[\w+.-]+", scheme) else HIDDEN


def _masked(document: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return a document with everything masked in what a catalog may have said."""
    return {key: _without_hosts(mask(value)) if key in _TOLD else value for key, value in document.items()}


def _without_hosts(text: str) -> str:
    text = _ADDRESS.sub(lambda found: f"{found['scheme']}{HIDDEN}", text)
    text = _BEARER.sub(lambda found: f"{found['kind']} {HIDDEN}", text)
    return _HOST.sub(HIDDEN, text)


def _mask(settings: Settings, catalog: str) -> Mask:
    """Return the mask for the values of a catalog's properties, the parts of its addresses, and other secrets."""
    definition, spark = settings.catalogs[catalog], settings.spark
    values = [*definition.properties.values(), *definition.spark.values()]
    values += [value for key, value in spark.conf.items() if _SECRET.search(key)]
    places = [settings.capture.location or "", str(settings.project), str(settings.home), spark.remote or ""]
    places += [str(Path.home()), platform.node()]
    found = {part for value in [*values, *places] for part in _parts(value)}
    return Mask.of({*found, *settings.secrets.values()})


def _parts(value: str) -> Iterator[str]:
    """Yield what is masked of a value: all of it, and the user, password, host and options of an address."""
    if _HARMLESS.fullmatch(value):
        return
    if len(value) >= _SHORTEST:
        yield value
    url = urlsplit(value)
    if not url.scheme or not url.netloc:
        yield from (part for part in value.split(":") if len(part) >= _SHORTEST)  # a client's id and its secret
        return
    if url.password:
        yield from {url.password, unquote(url.password)}
    parts = [url.username or "", url.hostname or "", *(option for _, option in parse_qsl(url.query))]
    yield from (part for part in parts if len(part) >= _SHORTEST and not _HARMLESS.fullmatch(part))
