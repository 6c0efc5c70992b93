"""Structured logs of a daemon on the standard error: one line per event, as JSON or logfmt.

A line has `ts`, `level`, `logger`, `msg`, and the fields that were given with
`log.info("...", extra={"fields": {...}})`. Text of others cannot begin a line of its own.
"""

from __future__ import annotations

import logging
import re
import sys
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from ordercast.service.settings import LogFormat, LogLevel

PLAIN = re.compile(r"[\w./:@#+-]+")  # needs no quotes in logfmt


def with_fields(**fields: object) -> dict[str, Any]:
    """For `extra=`."""
    return {"fields": fields}


class StructuredFormatter(logging.Formatter, ABC):
    """Makes a record one mapping; how that is written is the matter of subclasses."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = datetime.fromtimestamp(record.created, UTC)
        entry: dict[str, object] = {
            "ts": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return self.written(entry)

    @abstractmethod
    def written(self, entry: dict[str, object]) -> str:
        """As one line."""


class JsonFormatter(StructuredFormatter):
    """JSON lines."""

    def written(self, entry: dict[str, object]) -> str:
        return _json(entry)


class LogfmtFormatter(StructuredFormatter):
    """`key=value`, quoted where need be."""

    def written(self, entry: dict[str, object]) -> str:
        return " ".join(f"{key}={_value(value)}" for key, value in entry.items())


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _value(value: object) -> str:
    text = value if isinstance(value, str) else _json(value)
    return text if PLAIN.fullmatch(text) else _json(text)


FORMATTERS: dict[LogFormat, type[StructuredFormatter]] = {
    "json": JsonFormatter,
    "logfmt": LogfmtFormatter,
}


def install(form: LogFormat, level: LogLevel, stream: IO[str] | None = None) -> logging.Handler:
    """Write all logs of this process so, from this level on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(FORMATTERS[form]())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    return handler
