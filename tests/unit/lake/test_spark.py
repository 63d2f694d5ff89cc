"""Sessions that cannot be had are explained before any JVM starts."""

from pathlib import Path

import pytest

from calve import settings
from calve.errors import EnvironmentUnfit
from calve.lake.spark import session


def test_a_remote_spark_that_does_not_listen_is_named_at_once(tmp_path: Path) -> None:
    """The error names the server, and leaves out a token that the address may hold."""
    (tmp_path / settings.FILE).write_text("[spark]\nremote = 'sc://127.0.0.1:1/;token=secret'")
    with pytest.raises(EnvironmentUnfit, match=r"Spark at 127\.0\.0\.1 cannot be used") as error:
        session(settings.load(tmp_path, {}), "test")
    assert "secret" not in str(error.value.as_json())
