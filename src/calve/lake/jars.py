"""The jars that Spark needs beside its own: fetched once by Spark's Ivy, then started from a cache."""

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

from calve.errors import JarsUnavailable
from calve.folders import is_refusal, not_writable
from calve.lake.java import Java
from calve.lake.object_stores import AZURE_SCHEMES, S3_SCHEMES
from calve.settings import Settings

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13"
AWS = "org.apache.iceberg:iceberg-aws-bundle"
GCP = "org.apache.iceberg:iceberg-gcp-bundle"
AZURE = "org.apache.iceberg:iceberg-azure-bundle"
"""Of the version in the settings."""
SQLITE = "org.xerial:sqlite-jdbc:3.53.4.0"  # 3.51.3 or later: before, a reset of the WAL could lose commits
POSTGRES = "org.postgresql:postgresql:42.7.14"
_BROUGHT_BY_SPARK = "org.slf4j:slf4j-api,org.checkerframework:checker-qual"


def coordinates(settings: Settings) -> tuple[str, ...]:
    """Return the Maven coordinates that the configured catalogs need."""
    catalogs = settings.catalogs.values()
    uris = [catalog.properties.get("uri", "") for catalog in catalogs]
    places = [catalog.properties.get("warehouse", "") for catalog in catalogs] + [settings.capture.location or ""]
    schemes = {place.partition(":")[0] for place in places}
    prefixes = {key.partition(".")[0] for catalog in catalogs for key in catalog.properties}
    of_iceberg = {
        ICEBERG: True,
        AWS: "s3" in prefixes or bool(schemes & S3_SCHEMES) or any(catalog.kind == "glue" for catalog in catalogs),
        GCP: "gcs" in prefixes or "gs" in schemes,
        AZURE: "adls" in prefixes or bool(schemes & AZURE_SCHEMES),
    }
    drivers = {
        SQLITE: any(uri.startswith("sqlite") for uri in uris),
        POSTGRES: any(uri.startswith("postgres") for uri in uris),
    }
    return (
        *(f"{jar}:{settings.spark.iceberg}" for jar, wanted in of_iceberg.items() if wanted),
        *(jar for jar, wanted in drivers.items() if wanted),
        *settings.spark.packages,
    )


def cached(settings: Settings) -> list[Path] | None:
    """Return the jars from the cache; None unless all are complete."""
    try:
        sizes = json.loads(_list_file(settings).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    jars = {settings.spark.jars_cache / name: size for name, size in sizes.items()}
    # Sizes, because a disk that was full while jars were copied leaves truncated ones.
    complete = all(jar.is_file() and jar.stat().st_size == size for jar, size in jars.items())
    return list(jars) if complete else None


def provide(settings: Settings, java: Java) -> list[Path]:
    """Return the jars, fetching them the first time.

    Raises:
        JarsUnavailable: they could not be fetched.
    """
    return cached(settings) or _resolve(settings, java)


def _list_file(settings: Settings) -> Path:
    """Return the file that lists a set of jars; it is written last, when all are in place."""
    identity = hashlib.sha256("\n".join(coordinates(settings)).encode()).hexdigest()[:16]
    return settings.spark.jars_cache / f"{identity}.json"


def _resolve(settings: Settings, java: Java) -> list[Path]:
    """Download into a temporary folder, then move each jar into place; other processes may do the same meanwhile."""
    cache = settings.spark.jars_cache
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="resolving-", dir=cache) as folder:
            _run_ivy(settings, java, Path(folder))
            found = sorted((Path(folder) / "jars").glob("*.jar"))
            sizes = {jar.name: jar.stat().st_size for jar in found}
            for jar in found:
                jar.replace(cache / jar.name)
            listing = Path(folder) / "list.json"
            listing.write_text(json.dumps(sizes, indent=1), encoding="utf-8")
            listing.replace(_list_file(settings))
    except OSError as error:
        if is_refusal(error):
            raise not_writable("The cache of Spark's jars", cache, error, "spark.jars_cache") from error
        raise JarsUnavailable(
            f"The jars for Spark cannot be saved in {cache}: {error}", remedy="Set jars_cache in [spark]."
        ) from error
    return [cache / name for name in sizes]


def _run_ivy(settings: Settings, java: Java, folder: Path) -> None:
    """Run Spark's resolution of packages, with a main class that only prints Ivy's version."""
    import pyspark

    own = {key: value for key, value in settings.spark.conf.items() if key.startswith("spark.jars.")}
    conf = own | {"spark.jars.ivy": str(folder)}
    command = [
        *(str(java.executable), "-Xmx512m", "-cp", str(Path(pyspark.__file__).parent / "jars" / "*")),
        *("org.apache.spark.deploy.SparkSubmit", "--master", "local[1]"),
        *("--packages", ",".join(coordinates(settings)), "--exclude-packages", _BROUGHT_BY_SPARK),
        *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
        *("--class", "org.apache.ivy.Main", "spark-internal", "-version"),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - all ours
    if said.returncode != 0 or not list((folder / "jars").glob("*.jar")):
        raise JarsUnavailable(
            f"Spark's Ivy could not download {', '.join(coordinates(settings))}: {_reason(said.stderr)}",
            remedy="Check the network or proxy; spark.jars.ivySettings in [spark.conf] can name a mirror. "
            f"Or copy the folder {settings.spark.jars_cache} from a machine that has it.",
        )


def _reason(log: str) -> str:
    """Return the most telling line of Ivy's log."""
    lines = [line.strip(" \t:") for line in log.splitlines()]
    telling = [line for line in lines if "not found" in line or "UNRESOLVED" in line or "Exception" in line]
    return (telling or [line for line in lines if line] or ["no output"])[0]
