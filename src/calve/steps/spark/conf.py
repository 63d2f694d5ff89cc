"""Spark's configuration of servers, applications and the sessions of steps. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calve.lake import context_conf, launch_conf, session_conf
from calve.settings import VARIABLE_SUBSTITUTION, Settings
from calve.steps.config import text
from calve.steps.failures import fatal

STAMP = "spark.sql.iceberg.snapshot-property."
"""The prefix of keys that Iceberg writes, without the prefix, to the summary of each snapshot of the session."""
_COMPILED = "2000"
"""How many compiled classes Spark caches; with the default, the next step finds none of them."""
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def with_master(settings: Settings, master: str) -> Settings:
    """Return settings with another master."""
    return settings.model_copy(update={"spark": settings.spark.model_copy(update={"master": master})})


def server_conf(settings: Settings, jars: Iterable[Path], events: Path) -> dict[str, str]:
    """Return the configuration that a worker's Spark Connect server starts with; it may hold secrets."""
    return {
        "spark.sql.codegen.cache.maxEntries": _COMPILED,
        **session_conf(settings),
        **context_conf(settings),
        **launch_conf(settings, jars),
        **event_conf(events),
        "spark.connect.grpc.binding.address": "localhost",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.progress.reportInterval": "500ms",
    }


def event_conf(folder: Path) -> dict[str, str]:
    """Return the configuration of the event log: plain text in rolling files."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "16m",
        "spark.redaction.regex": "(?i)secret|password|token|credential|authorization|access[.-]?key",
    }


def step_conf(config: Mapping[str, Any], key: str, branch: str) -> dict[str, str]:
    """Return the configuration of a step's session, in addition to its server's.

    The summary of every snapshot that it commits gets the attempt's key, and the id of the capture if there is one.
    """
    conf = {name: text(value) for name, value in config.get("conf", {}).items()}
    conf[f"{STAMP}calve.attempt"] = key
    if config.get("capture"):
        conf[f"{STAMP}calve.capture-id"] = str(config["capture"])
    if config.get("catalog"):
        conf["spark.sql.defaultCatalog"] = str(config["catalog"])
    if branch:
        conf["spark.wap.branch"] = branch
    return conf


def sql_conf(config: Mapping[str, Any], key: str, branch: str) -> dict[str, str]:
    """Return the configuration of a session in which calve runs SQL or a function.

    Raises:
        StepFailed: the step enables Spark's own ``${…}``, which only applications and jars may use.
    """
    conf = step_conf(config, key, branch)
    is_audit = "application" in config or "jar" in config
    if conf.get(VARIABLE_SUBSTITUTION, "").strip().lower() == "true" and not is_audit:
        raise fatal(
            f"spark.conf: {VARIABLE_SUBSTITUTION} cannot be true: calve resolves ${{…}} in SQL.",
            remedy="Leave it out, or run an application or a jar.",
        )
    return conf | {VARIABLE_SUBSTITUTION: "false"}


def remote_conf(settings: Settings, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration of a session on a server that is not configured for the lake."""
    return session_conf(settings) | dict(conf)


def properties(conf: Mapping[str, str]) -> str:
    """Return a configuration in the format of a Java properties file."""
    return "".join(f"{_key(name)}={_value(value)}\n" for name, value in conf.items())


def _key(name: str) -> str:
    return "".join(f"\\{letter}" if letter in " =:#!" else letter for letter in name.translate(_ESCAPES))


def _value(value: str) -> str:
    escaped = value.translate(_ESCAPES)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
