"""Spark's settings for servers, applications and the sessions of steps. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calve.lake.spark_conf import context_conf, launch_conf, session_conf
from calve.settings import VARIABLE_SUBSTITUTION, Settings
from calve.steps.configs import text
from calve.steps.failures import fatal

STAMP = "spark.sql.iceberg.snapshot-property."
"""What follows it is written into the summary of every snapshot that a session commits."""
_COMPILED = "2000"
"""Classes that Spark compiled for queries and keeps: by default so few that the next step's find none of them left."""
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def with_master(settings: Settings, master: str) -> Settings:
    """Return settings with another master."""
    return settings.model_copy(update={"spark": settings.spark.model_copy(update={"master": master})})


def server_conf(settings: Settings, jars: Iterable[Path], events: Path) -> dict[str, str]:
    """Return what a Spark Connect server of our own is started with. It may hold secrets."""
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
    """Return what makes Spark write down what it reads, writes and shuffles: in plain text, in files that roll."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "16m",
        "spark.redaction.regex": "(?i)secret|password|token|credential|authorization|access[.-]?key",
    }


def step_conf(config: Mapping[str, Any], key: str, branch: str) -> dict[str, str]:
    """Return what the session of a step is given beside what its server knows.

    Every snapshot that the session commits is stamped with the attempt's key, and the capture's id where there is one.
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
    """Return what the session of a step is given in which calve runs SQL or a function.

    Raises:
        StepFailed: the step turns Spark's own ``${…}`` on, which is for applications and jars.
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
    """Return what a session needs on a server that knows nothing of the lake."""
    return session_conf(settings) | dict(conf)


def properties(conf: Mapping[str, str]) -> str:
    """Return settings as a file of properties, in the form of Java."""
    return "".join(f"{_key(name)}={_value(value)}\n" for name, value in conf.items())


def _key(name: str) -> str:
    return "".join(f"\\{letter}" if letter in " =:#!" else letter for letter in name.translate(_ESCAPES))


def _value(value: str) -> str:
    escaped = value.translate(_ESCAPES)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
