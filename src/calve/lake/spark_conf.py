"""Spark's settings for the lake, derived from the same definitions that PyIceberg uses. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from calve.errors import SettingsInvalid
from calve.lake.object_stores import PATH_STYLE, S3_SCHEMES, STORE_SCHEMES, VIRTUAL_HOST, s3_defaults
from calve.settings import VARIABLE_SUBSTITUTION, CatalogSettings, Settings

# Iceberg 1.11's parser loses the values of :name in SQL otherwise (apache/iceberg#16625).
_LEGACY_PARAMETERS = "spark.sql.legacy.parameterSubstitution.constantsOnly"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_ANY_IO = "org.apache.iceberg.io.ResolvingFileIO"
_LOG4J = Path(__file__).with_name("log4j2.properties")
_SHARED = ("s3.", "client.", "gcs.", "adls.", "header.", "rest.", "glue.")  # the same names on both sides
_RENAMED = {"s3.region": "client.region", "glue.region": "client.region", "client.region": "client.region"}
_REST = (
    "uri",
    "warehouse",
    "credential",
    "token",
    "oauth2-server-uri",
    "scope",
    "prefix",
    "audience",
    "resource",
)
_DELEGATION = "header.X-Iceberg-Access-Delegation"
_LIBPQ = {"connect_timeout": "connectTimeout", "application_name": "ApplicationName"}


def session_conf(settings: Settings) -> dict[str, str]:
    """Return the settings of the lake for a session, also for a remote one."""
    # calve has resolved the references: Spark would take what is left for variables, and replace them by nothing.
    conf = {"spark.sql.defaultCatalog": settings.default_catalog, VARIABLE_SUBSTITUTION: "false"}
    for name, catalog in settings.catalogs.items():
        conf |= {f"spark.sql.catalog.{name}.default-namespace": settings.default_namespace}
        conf |= catalog_conf(name, catalog, settings.capture.location)
    return conf | settings.spark.conf


def context_conf(settings: Settings) -> dict[str, str]:
    """Return further settings for a Spark that calve starts: quiet, and leaving nothing in the current folder."""
    conf = {
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.catalogImplementation": "in-memory",
        _LEGACY_PARAMETERS: "true",
        "spark.sql.warehouse.dir": f"{settings.home}/spark-warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.spark.master.startswith("local"):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return conf | settings.spark.conf


def launch_conf(settings: Settings, jars: Iterable[Path]) -> dict[str, str]:
    """Return the settings that the JVM needs when it starts. They are on a command line, so they hold no secret."""
    options = settings.spark.conf.get("spark.driver.extraJavaOptions", "")
    own = settings.spark.conf.get("spark.jars", "")
    return {
        "spark.master": settings.spark.master,
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={_LOG4J.as_uri()}" {options}'.strip(),
        "spark.jars": ",".join([*map(str, jars), *([own] if own else [])]),
    }


def catalog_conf(name: str, catalog: CatalogSettings, location: str | None = None) -> dict[str, str]:
    """Return the ``spark.sql.catalog.NAME`` settings of one catalog, whose ICDC tables are at a location of their own.

    Raises:
        SettingsInvalid: Spark has no such kind of catalog.
    """
    given = catalog.properties
    shared = {_RENAMED.get(key, key): value for key, value in given.items() if key.startswith(_SHARED)}
    shared = shared | _s3(shared)
    shared.pop(VIRTUAL_HOST, None)
    match catalog.kind:
        case "sql":
            kind = _jdbc(name, given) | _kept(given, "warehouse")
        case "rest":
            kind = {"type": "rest"} | _kept(given, *_REST) | _delegation(given)
        case "hive":
            kind = {"type": "hive"} | _kept(given, "uri", "warehouse")
        case "glue":
            kind = {"type": "glue", "io-impl": _S3_IO} | _kept(given, "warehouse")
        case other:  # the settings refuse it
            raise AssertionError(other)
    if catalog.kind != "rest" and (implementation := _io(given.get("warehouse", ""), location or "")):
        kind["io-impl"] = implementation
    # Without the cache, Spark sees immediately what others commit.
    conf = {"cache-enabled": "false"} | shared | kind | catalog.spark
    prefix = f"spark.sql.catalog.{name}"
    return {prefix: _CATALOG} | {f"{prefix}.{key}": value for key, value in conf.items()}


def _s3(shared: Mapping[str, str]) -> dict[str, str]:
    """Return what Spark needs so that it reaches S3 as PyIceberg does with the same properties."""
    known = s3_defaults(shared)
    implied = {"client.region": known["s3.region"]} if "s3.region" in known else {}
    if PATH_STYLE in shared:
        return implied
    if VIRTUAL_HOST in shared:
        return implied | {PATH_STYLE: str(shared[VIRTUAL_HOST].lower() == "false").lower()}
    return implied | ({PATH_STYLE: "true"} if "s3.endpoint" in shared else {})


def _io(*folders: str) -> str | None:
    """Return Iceberg's file system for some folders; None if Hadoop's, the default, is right for all of them."""
    schemes = {folder.partition(":")[0] for folder in folders if folder}
    if not schemes & (STORE_SCHEMES):
        return None
    return _S3_IO if schemes <= S3_SCHEMES else _ANY_IO


def _delegation(properties: Mapping[str, str]) -> dict[str, str]:
    """Let Spark ask for credentials as PyIceberg does, unless the definition has the header."""
    given = {key.lower() for key in properties}
    return {} if _DELEGATION.lower() in given else {_DELEGATION: "vended-credentials"}


def _kept(properties: Mapping[str, str], *keys: str) -> dict[str, str]:
    return {key: properties[key] for key in keys if key in properties}


def _jdbc(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    uri = properties.get("uri", "")
    url = urlsplit(uri)
    # V1 is the schema with views; Spark would create V0.
    conf = {"type": "jdbc", "jdbc.schema-version": "V1"}
    match url.scheme.partition("+")[0]:
        case "sqlite" if url.path.startswith("/") and len(url.path) > 1:
            # sqlite-jdbc waits 3 s by default, and a commit that fails by a lock has an unknown outcome.
            return conf | {"uri": f"jdbc:sqlite:{url.path[1:]}?busy_timeout=30000"}
        case "postgresql" if url.hostname:
            login = {"jdbc.user": url.username, "jdbc.password": url.password}
            return conf | {"uri": _postgres(url)} | {key: unquote(value) for key, value in login.items() if value}
        case _:
            raise SettingsInvalid(
                f"catalogs.{name}.uri: Spark cannot connect to the database.",
                remedy="Use sqlite:////folder/file or postgresql+psycopg://user:password@host:port/database.",
                catalog=name,
            )


def _postgres(url: SplitResult) -> str:
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    port = f":{url.port}" if url.port else ""
    options = urlencode([(_LIBPQ.get(key, key), value) for key, value in parse_qsl(url.query)])
    return f"jdbc:postgresql://{host}{port}{url.path or '/'}{'?' + options if options else ''}"
