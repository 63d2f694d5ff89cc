"""Spark's settings follow from PyIceberg's."""

from pathlib import Path

import pytest

from calve import settings
from calve.errors import SettingsInvalid
from calve.lake.spark_conf import catalog_conf, context_conf, launch_conf, session_conf
from calve.settings import CatalogSettings

_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_JDBC = {"type": "jdbc", "jdbc.schema-version": "V1"}


@pytest.mark.parametrize(
    ("given", "derived"),
    [
        (
            {"uri": "sqlite:////wh/c.db?timeout=5", "warehouse": "/wh"},
            _JDBC | {"uri": "jdbc:sqlite:/wh/c.db?busy_timeout=30000", "warehouse": "/wh"},
        ),
        (
            {
                "uri": "postgresql+psycopg://me:p%40ss@host:5433/db?sslmode=require&connect_timeout=3",
                "warehouse": "s3://b/wh",
                "s3.region": "eu-west-1",
                "s3.force-virtual-addressing": "false",
                "py-io-impl": "x",
            },
            _JDBC
            | {
                "uri": "jdbc:postgresql://host:5433/db?sslmode=require&connectTimeout=3",
                "jdbc.user": "me",
                "jdbc.password": "p@ss",
                "warehouse": "s3://b/wh",
                "io-impl": _IO,
                "client.region": "eu-west-1",
                "s3.path-style-access": "true",
            },
        ),
        (
            {"uri": "postgresql://[::1]/db", "warehouse": "/w"},
            _JDBC | {"uri": "jdbc:postgresql://[::1]/db", "warehouse": "/w"},
        ),
        (
            {
                "type": "REST",
                "uri": "https://c",
                "warehouse": "w",
                "credential": "a:b",
                "scope": "s",
                "oauth2-server-uri": "https://o",
                "header.X-A": "1",
                "header.X-Iceberg-Access-Delegation": "vended-credentials",
                "s3.endpoint": "https://e",
            },
            {
                "type": "rest",
                "uri": "https://c",
                "warehouse": "w",
                "credential": "a:b",
                "scope": "s",
                "oauth2-server-uri": "https://o",
                "header.X-A": "1",
                "header.X-Iceberg-Access-Delegation": "vended-credentials",
                "s3.endpoint": "https://e",
                "s3.path-style-access": "true",
                "client.region": "us-east-1",
            },
        ),
        (
            {"uri": "thrift://h", "s3.endpoint": "https://e", "s3.region": "r", "s3.force-virtual-addressing": "true"},
            {
                "type": "hive",
                "uri": "thrift://h",
                "s3.endpoint": "https://e",
                "client.region": "r",
                "s3.path-style-access": "false",
            },
        ),
        (
            {"uri": "thrift://h", "s3.endpoint": "https://s3.eu-west-1.amazonaws.com", "s3.path-style-access": "false"},
            {
                "type": "hive",
                "uri": "thrift://h",
                "s3.endpoint": "https://s3.eu-west-1.amazonaws.com",
                "s3.path-style-access": "false",
            },
        ),
        ({"uri": "thrift://h:9083"}, {"type": "hive", "uri": "thrift://h:9083"}),
        (
            {"type": "glue", "glue.region": "us-east-1", "glue.id": "1", "warehouse": "s3://b"},
            {
                "type": "glue",
                "io-impl": _IO,
                "client.region": "us-east-1",
                "glue.id": "1",
                "warehouse": "s3://b",
            },
        ),
        (
            {"uri": "thrift://h", "spark": {"cache-enabled": "true", "clients": "9"}},
            {"type": "hive", "uri": "thrift://h", "cache-enabled": "true", "clients": "9"},
        ),
    ],
)
def test_each_kind_of_catalog_is_translated(given: dict[str, str], derived: dict[str, str]) -> None:
    """The same catalog, in the words of Iceberg's Java side; Spark's own properties win."""
    conf = catalog_conf("lake", CatalogSettings.model_validate(given))
    prefix = "spark.sql.catalog.lake"
    assert conf.pop(prefix) == "org.apache.iceberg.spark.SparkCatalog"
    assert conf == {f"{prefix}.{key}": value for key, value in ({"cache-enabled": "false"} | derived).items()}


@pytest.mark.parametrize(
    ("warehouse", "location", "implementation"),
    [
        ("s3a://b/w", None, _IO),
        ("s3://b/w", "s3a://c", _IO),
        ("/w", "s3://c", "org.apache.iceberg.io.ResolvingFileIO"),
        ("gs://b/w", None, "org.apache.iceberg.io.ResolvingFileIO"),
        ("abfss://c@a.dfs.core.windows.net/w", "s3://c", "org.apache.iceberg.io.ResolvingFileIO"),
        ("/w", "file:///c", None),
    ],
)
def test_spark_has_a_file_system_for_the_tables_and_their_captures(
    warehouse: str, location: str | None, implementation: str | None
) -> None:
    """Where they are in different stores, Iceberg chooses by the scheme."""
    given = CatalogSettings.model_validate({"uri": "thrift://h", "warehouse": warehouse})
    assert catalog_conf("c", given, location).get("spark.sql.catalog.c.io-impl") == implementation


@pytest.mark.parametrize("given", [{"uri": "sqlite://"}, {"uri": "postgresql:///db"}, {"type": "sql"}])
def test_what_spark_cannot_reach_is_refused(given: dict[str, str]) -> None:
    """The error about a database without an address names the catalog."""
    with pytest.raises(SettingsInvalid, match=r"catalogs\.odd"):
        catalog_conf("odd", CatalogSettings.model_validate(given))


def test_a_session_knows_all_catalogs_and_the_users_settings_win(tmp_path: Path) -> None:
    """Secrets are in the session's settings only, never on the command line."""
    (tmp_path / settings.FILE).write_text(
        "default_catalog = 'b'\n[catalogs.a]\nuri = 'sqlite:////a'\n"
        "[catalogs.b]\nuri = 'postgresql://u:secret@h/d'\nwarehouse = '/w'\n"
        "[spark.conf]\n'spark.ui.enabled' = true\n"
        "'spark.driver.extraJavaOptions' = '-Da=b'\n'spark.jars' = '/x.jar'"
    )
    found = settings.load(tmp_path, {})
    conf = session_conf(found)
    assert conf["spark.sql.defaultCatalog"] == "b"
    assert "spark.sql.catalog.a" in conf
    assert context_conf(found)["spark.ui.enabled"] == "true"
    assert context_conf(found)["spark.driver.host"] == "127.0.0.1"
    launch = launch_conf(found, [Path("/j/a.jar")])
    assert launch["spark.jars"] == "/j/a.jar,/x.jar"
    assert launch["spark.driver.memory"] == "2g"
    assert launch["spark.driver.extraJavaOptions"].endswith("-Da=b")
    assert "log4j2.properties" in launch["spark.driver.extraJavaOptions"]
    assert "secret" not in str(launch)


def test_spark_replaces_no_references_by_itself(tmp_path: Path) -> None:
    """A session is told so, wherever it is; settings that say otherwise are refused."""
    assert session_conf(settings.load(tmp_path, {}))["spark.sql.variable.substitute"] == "false"
    (tmp_path / settings.FILE).write_text('[spark.conf]\n"spark.sql.variable.substitute" = true')
    with pytest.raises(SettingsInvalid, match="cannot be true: calve resolves"):
        settings.load(tmp_path, {})
