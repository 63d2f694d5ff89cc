"""What servers, applications and sessions are told."""

from pathlib import Path

import pytest

from calve.errors import StepFailed
from calve.settings import VARIABLE_SUBSTITUTION, load
from calve.steps.spark.conf import properties, remote_conf, server_conf, sql_conf, step_conf, with_master


def test_the_commits_of_a_session_are_stamped() -> None:
    """With the attempt, and with the capture where there is one."""
    conf = step_conf({"capture": "c1", "conf": {"spark.sql.ansi.enabled": True, "n": 3}}, "key-1", "")
    assert conf == {
        "spark.sql.ansi.enabled": "true",
        "n": "3",
        "spark.sql.iceberg.snapshot-property.calve.attempt": "key-1",
        "spark.sql.iceberg.snapshot-property.calve.capture-id": "c1",
    }


def test_a_branch_is_written_to_and_read_from() -> None:
    """And a catalog is the one of names that name none."""
    conf = step_conf({"catalog": "other", "capture": ""}, "key-1", "b1")
    assert (conf["spark.wap.branch"], conf["spark.sql.defaultCatalog"]) == ("b1", "other")
    assert "spark.sql.iceberg.snapshot-property.calve.capture-id" not in conf


def test_a_server_listens_on_the_loopback_alone(tmp_path: Path) -> None:
    """On a port that the system picks."""
    conf = server_conf(with_master(load(tmp_path, {}), "spark://m:7077"), [], tmp_path)
    assert conf["spark.connect.grpc.binding.address"] == "localhost"
    assert conf["spark.connect.grpc.binding.port"] == "0"
    assert conf["spark.master"] == "spark://m:7077"


def test_an_external_server_gets_the_settings_of_the_lake(tmp_path: Path) -> None:
    """What the step says wins."""
    conf = remote_conf(load(tmp_path, {}), {"spark.sql.defaultCatalog": "other"})
    assert conf["spark.sql.defaultCatalog"] == "other"
    assert "spark.sql.catalog.lake" in conf


def test_a_file_of_properties_keeps_every_letter() -> None:
    """Java gives a meaning to backslashes, and to blanks and colons in keys."""
    text = properties({"a.b c:d": " x\\y\nz", "e": "1=2"})
    assert text == "a.b\\ c\\:d=\\ x\\\\y\\nz\ne=1=2\n"


def test_spark_replaces_nothing_in_sql_by_itself(tmp_path: Path) -> None:
    """On servers, in sessions on servers of others, and in applications, unless those say otherwise."""
    assert server_conf(load(tmp_path, {}), [], tmp_path)[VARIABLE_SUBSTITUTION] == "false"
    assert remote_conf(load(tmp_path, {}), {})[VARIABLE_SUBSTITUTION] == "false"
    assert sql_conf({}, "key-1", "")[VARIABLE_SUBSTITUTION] == "false"
    own = {"conf": {VARIABLE_SUBSTITUTION: True}}
    assert step_conf({"application": "a.py", **own}, "key-1", "")[VARIABLE_SUBSTITUTION] == "true"
    assert sql_conf({"application": "a.py", **own}, "key-1", "")[VARIABLE_SUBSTITUTION] == "false"


@pytest.mark.parametrize("value", [True, "true", " TRUE "])
def test_a_step_cannot_have_spark_replace_what_calve_resolves(value: object) -> None:
    """It is told so; nothing is turned off in silence."""
    with pytest.raises(StepFailed, match="cannot be true: calve resolves"):
        sql_conf({"script": "SELECT 1", "conf": {VARIABLE_SUBSTITUTION: value}}, "key-1", "")
