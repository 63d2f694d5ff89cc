"""Log output on standard error: lines for people, or JSON for programs, with the ids of the current work."""

import json
import logging
import sys
import time
from typing import Any

from calve.engine import current_log_context
from calve.settings import LogSettings

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "about"}
"""The attributes of every record; all others were passed as ``extra``."""


def set_up(settings: LogSettings) -> None:
    """Configure logging by the settings; a second call replaces the first."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _StandardError)]:
        root.removeHandler(handler)
    fresh = _StandardError()
    fresh.setFormatter(_Json() if settings.format == "json" else _Text())
    root.addHandler(fresh)
    logging.getLogger("calve").setLevel(settings.level.upper())


class _StandardError(logging.Handler):
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # standard error is closed
            return


class _Text(logging.Formatter):
    """One line, with a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        ids = " ".join(f"{name}={value}" for name, value in current_log_context().items())
        head = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"
        lines = [f"{head} ({ids})" if ids else head]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        return "\n".join(lines)


class _Json(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **current_log_context(),
            **{name: value for name, value in vars(record).items() if name not in _PLAIN},
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"
