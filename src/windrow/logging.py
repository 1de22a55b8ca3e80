"""Log records: stable event names and fields, and the two formats that commands write.

A record is a plain `logging` record whose `extra` is made by `event`, so an application that
configures logging itself sees the same names and fields. No format shows a password, and whatever
a program logs, a record is one line of JSON, or a line of text with indented lines below it.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, NamedTuple, TextIO

from windrow.errors import ConfigError
from windrow.redaction import redact, redact_secrets, redact_text

logger = logging.getLogger(__name__)

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_COLORS: Final = {
    logging.DEBUG: "\033[2m",
    logging.INFO: "\033[32m",
    logging.WARNING: "\033[33m",
    logging.ERROR: "\033[31m",
    logging.CRITICAL: "\033[1;31m",
}
_RESET: Final = "\033[0m"
_INDENT: Final = "\n    "
MAX_BITS: Final = 1024  # of a number; Python writes none of more than 4300 digits
MAX_DEPTH: Final = 8  # of a field; what is deeper is written as text
# The fields that repeat what others wrote.
_QUOTES: Final = frozenset({"message", "error", "traceback", "stack"})
# What a terminal obeys, and what changes the direction of text: errors repeat what others wrote.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")  # without their other half no JSON
# The attributes of every record, and uvicorn's copy of the message; any other is a field.
_STANDARD: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
)


class LogConfiguration(NamedTuple):
    format: str
    level: str


_configuration: LogConfiguration | None = None


def event(name: str, **fields: Any) -> dict[str, Any]:
    """The `extra` of a log record: the stable name of the event, and its fields."""
    return {"event": name, **fields}


class TextFormatter(logging.Formatter):
    """One line for a person: time, level, message. Records of other packages name their logger.
    Further lines, of a traceback for example, are indented, so that no text that is logged can
    pass for a record."""

    def __init__(self, *, colors: bool = False) -> None:
        super().__init__()
        self._colors = colors

    def format(self, record: logging.LogRecord) -> str:
        is_named = not _is_own(record) and not record.name.startswith("py.")
        lines = [f"{record.name}: {_message(record)}" if is_named else _message(record)]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        if traceback := getattr(record, "traceback", None):
            lines.append(_as_text(traceback).rstrip())
        if record.stack_info:
            lines.append(record.stack_info)
        text = _redact_quote("\n".join(lines), record).replace("\n", _INDENT)
        text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
        return f"{self.formatTime(record)} {self._level(record)} {text}"

    def _level(self, record: logging.LogRecord) -> str:
        color = _COLORS.get(record.levelno) if self._colors else None
        return f"{color}{record.levelname}{_RESET}" if color else record.levelname


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs: time (UTC), level, logger, pid, message, and the fields
    of the record, `event` among them."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": _message(record),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        # A field of this name that a program adds does not replace ours.
        found: dict[str, Any] = {**fields, **redact(_as_json(extra)), **fields}
        for name in _QUOTES & found.keys():
            found[name] = _redact_quote(_as_text(found[name]), record)
        return json.dumps(found)


def configure_logging(
    format: str = "text", level: str = "info", *, stream: TextIO | None = None
) -> None:
    """Log to a stream (default: stderr) in one of `FORMATS`, from one of `LEVELS` on; Python's
    warnings and uncaught exceptions too. Logging that is configured already is left as it is.
    Raises ConfigError."""
    _check("log_format", format, FORMATS)
    _check("log_level", level, LEVELS)
    if logging.root.handlers:
        return
    global _configuration
    _configuration = LogConfiguration(format, level)
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    is_colored = stream.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter(colors=is_colored))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    sys.unraisablehook = _log_unraisable


def configuration() -> LogConfiguration | None:
    """What `configure_logging` has configured in this process, for its child processes."""
    return _configuration


def list_some(names: Mapping[str, int], most: int = 5) -> str:
    """Names with how often each occurs, the most frequent first: `a (3), b, and 2 more`."""
    ordered = sorted(names, key=lambda name: (-names[name], name))
    shown = [f"{name} ({names[name]})" if names[name] > 1 else name for name in ordered[:most]]
    more = [f"and {len(ordered) - most} more"] if len(ordered) > most else []
    return ", ".join([*shown, *more])


def _message(record: logging.LogRecord) -> str:
    """The message; of a warning of Python's, which comes with a line of code, the first line."""
    try:
        message = record.getMessage().rstrip()
    except Exception as error:  # of a program: its arguments may not fit, or be unreadable
        return f"{_as_text(record.msg)} (its arguments do not fit: {type(error).__name__})"
    return message.split("\n")[0] if record.name == "py.warnings" else message


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.split(".")[0] == "windrow"


def _redact_quote(text: str, record: logging.LogRecord) -> str:
    """A text that may repeat what others wrote: an error may repeat a payload or a key. Of
    Windrow's own records those below a warning do not, and there are very many of them."""
    if record.levelno < logging.WARNING and _is_own(record):
        return redact_text(text)
    return redact_secrets(text, is_config=True).text


def _as_json(value: Any, depth: int = 0) -> Any:
    """A field as JSON can hold it, whatever a program logs."""
    match value:
        case None | bool():
            return value
        case int() if value.bit_length() <= MAX_BITS:
            return value
        case float() if math.isfinite(value):
            return value
        case dict() if depth < MAX_DEPTH:
            return {_as_text(name): _as_json(item, depth + 1) for name, item in value.items()}
        case list() | tuple() | set() | frozenset() if depth < MAX_DEPTH:
            return [_as_json(item, depth + 1) for item in value]
    return _as_text(value)


def _as_text(value: Any) -> str:
    try:
        text = str(value)
    except Exception:  # an object of a program's
        return f"<{type(value).__name__}>"
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _log_uncaught(
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    place: str = "the main thread",
) -> None:
    """Log an exception that nothing caught, as Python would print it."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logger.critical(
        "uncaught exception in %s: %s",
        place,
        kind.__name__,
        exc_info=(kind, error, traceback),
        extra=event("exception.uncaught", error_type=kind.__name__, place=place),
    )


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = "a thread" if args.thread is None else f"thread {args.thread.name}"
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback, name)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    """Of a destructor or a callback of C, whose exceptions nothing can catch."""
    if args.exc_value is not None:
        place = f"{type(args.object).__name__} {getattr(args.object, '__qualname__', '')}".rstrip()
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback, place)


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
