"""The session that checkpoints belong to."""

from typing import Any

from calve.merging.merge_into import active_session


class _Connected:
    """Looks like a session of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"


def test_a_connect_session_is_active_meanwhile() -> None:
    """And the one before it is again afterwards; a session that is not of Spark Connect is left alone."""
    from pyspark.sql.connect.session import SparkSession

    local: Any = SparkSession._active_session
    before = getattr(local, "session", None)
    session: Any = _Connected()
    with active_session(session):
        assert local.session is session
    assert getattr(local, "session", None) is before
    classic: Any = object()
    with active_session(classic):
        assert getattr(local, "session", None) is before
