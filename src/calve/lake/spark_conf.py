"""Spark's settings for the lake, derived from the same definitions that PyIceberg uses. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from calve.errors import SettingsInvalid
from calve.settings import VARIABLE_SUBSTITUTION, CatalogSettings, Settings

# Iceberg 1.11's parser loses the values of :name in SQL otherwise (apache/iceberg#16625).
_LEGACY_PARAMETERS = "spark.sql.legacy.parameterSubstitution.constantsOnly"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"
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
_LIBPQ = {"connect_timeout": "connectTimeout", "application_name": "ApplicationName"}


def session_conf(settings: Settings) -> dict[str, str]:
    """Return the settings of the lake for a session, also for a remote one."""
    # calve has resolved the references: Spark would take what is left for variables, and replace them by nothing.
    conf = {"spark.sql.defaultCatalog": settings.default_catalog, VARIABLE_SUBSTITUTION: "false"}
    for name, catalog in settings.catalogs.items():
        conf |= {f"spark.sql.catalog.{name}.default-namespace": settings.default_namespace}
        conf |= catalog_conf(name, catalog)
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


def catalog_conf(name: str, catalog: CatalogSettings) -> dict[str, str]:
    """Return the ``spark.sql.catalog.NAME`` settings of one catalog.

    Raises:
        SettingsInvalid: Spark has no such kind of catalog.
    """
    given = catalog.properties
    shared = {_RENAMED.get(key, key): value for key, value in given.items() if key.startswith(_SHARED)}
    if (virtual := shared.pop("s3.force-virtual-addressing", None)) is not None:
        shared["s3.path-style-access"] = str(virtual.lower() == "false").lower()
    match catalog.kind:
        case "sql":
            kind = _jdbc(name, given) | _kept(given, "warehouse")
        case "rest":
            kind = {"type": "rest"} | _kept(given, *_REST)
        case "hive":
            kind = {"type": "hive"} | _kept(given, "uri", "warehouse")
        case "glue":
            kind = {"type": "glue", "io-impl": _S3_IO} | _kept(given, "warehouse")
        case other:  # the settings refuse it
            raise AssertionError(other)
    if catalog.kind != "rest" and given.get("warehouse", "").startswith("s3"):
        kind["io-impl"] = _S3_IO
    # Without the cache, Spark sees immediately what others commit.
    conf = {"cache-enabled": "false"} | shared | kind | catalog.spark
    prefix = f"spark.sql.catalog.{name}"
    return {prefix: _CATALOG} | {f"{prefix}.{key}": value for key, value in conf.items()}


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
