"""Translates the fields of a Docker step into the request that creates its container. Pure."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from calve.steps.config import text, texts
from calve.steps.failures import fatal

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?", re.IGNORECASE)
_NO_NAME = re.compile(r"[^a-zA-Z0-9_.-]")


def name_of(key: str) -> str:
    """Return the name of an attempt's container; it follows from the attempt, so the container never starts twice."""
    return f"calve-{_NO_NAME.sub('-', key)}"


def creation(config: Mapping[str, Any], key: str, title: str) -> dict[str, Any]:
    """Return the body of the request that creates a container.

    Raises:
        StepFailed: a field is invalid.
    """
    command = [*_words(config.get("command", [])), *(text(item) for item in config.get("args", []))]
    body = {
        "Image": config["image"],
        "Cmd": command or None,
        "Entrypoint": _words(config["entrypoint"]) if "entrypoint" in config else None,
        "Env": [f"{name}={value}" for name, value in texts(config.get("env", {})).items()],
        "WorkingDir": config.get("working_dir"),
        "User": text(config["user"]) if "user" in config else None,
        "Labels": {"calve.attempt": key, "calve.step": title},
        "HostConfig": _host_config(config),
    }
    return {name: value for name, value in body.items() if value is not None}


def reference(image: str) -> tuple[str, str]:
    """Return the repository of an image, and its tag or digest."""
    if "@" in image:
        repository, _, digest = image.partition("@")
        return repository, digest
    repository, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:  # a colon before a slash belongs to the port of a registry
        return image, "latest"
    return repository, tag


def _words(command: str | list[str]) -> list[str]:
    """Return a command as a list; a text is split into words like in a shell, but no shell runs it."""
    if not isinstance(command, str):
        return [str(word) for word in command]
    try:
        return shlex.split(command)
    except ValueError as error:
        raise fatal(f"The command {command!r} cannot be parsed: {error}.") from None


def _host_config(config: Mapping[str, Any]) -> dict[str, Any]:
    host = {
        "Binds": list(config.get("volumes", [])) or None,
        "NetworkMode": config.get("network"),
        "NanoCpus": round(_number(config["cpu"], "cpu") * 1_000_000_000) if "cpu" in config else None,
        "Memory": _bytes(config["memory"]) if "memory" in config else None,
        "DeviceRequests": _graphics(config["gpu"]) if "gpu" in config else None,
    }
    return {name: value for name, value in host.items() if value is not None}


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise fatal(f"docker.{name} is {value!r}, which is not a number.") from None


def _bytes(size: Any) -> int:
    match = _SIZE.fullmatch(text(size).strip())
    if match is None:
        raise fatal(f"docker.memory is {size!r}, which is not a size such as 512m or 2g.")
    return round(float(match[1]) * _UNITS[match[2].lower()])


def _graphics(count: Any) -> list[dict[str, Any]]:
    number = -1 if count == "all" else round(_number(count, "gpu"))
    return [{"Driver": "", "Count": number, "Capabilities": [["gpu"]]}]
