"""The two formats of the log, and what neither of them shows."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from windrow.errors import ConfigError
from windrow.logging import JsonFormatter, TextFormatter, configure_logging, event, list_some
from windrow.settings import unknown_variables

HOOKS = [(sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def configured_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test configures is gone after it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for module, hook in HOOKS:
        monkeypatch.setattr(module, hook, getattr(module, hook))
    handlers, level = logging.root.handlers, logging.root.level
    yield
    logging.root.handlers, logging.root.level = handlers, level
    logging.captureWarnings(False)


def logged(stream: io.StringIO, format: str = "text", level: str = "info") -> logging.Logger:
    logging.root.handlers = []  # as in a process that has configured nothing
    configure_logging(format, level, stream=stream)
    return logging.getLogger("windrow.worker.run_log")


def test_text_is_time_level_and_message() -> None:
    out = io.StringIO()
    logged(out).warning("job %s failed", 7, extra=event("job.retried", job_id="7"))
    day, time, rest = out.getvalue().split(" ", 2)
    assert rest == "WARNING job 7 failed\n"
    assert day.count("-") == time.count(":") == 2


def test_records_of_other_packages_name_their_logger() -> None:
    out = io.StringIO()
    logged(out)
    logging.getLogger("shop.jobs").info("hello")
    assert out.getvalue().endswith("INFO shop.jobs: hello\n")


def test_levels_have_colours_on_a_terminal_only() -> None:
    terminal, file = Terminal(), io.StringIO()
    logged(terminal).error("broken")
    assert "\033[31mERROR\033[0m broken" in terminal.getvalue()
    logged(file).error("broken")
    assert "\033" not in file.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    logged(terminal).error("broken")
    assert "\033" not in terminal.getvalue()


def test_json_is_one_object_with_event_and_fields() -> None:
    out = io.StringIO()
    logged(out, "json").warning(
        "job %s failed",
        7,
        extra={**event("job.retried", job_id="7", attempt=2, tenant=None), "color_message": "7"},
    )
    [line] = out.getvalue().splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found.pop("pid")
    assert found == {
        "level": "WARNING",
        "logger": "windrow.worker.run_log",
        "message": "job 7 failed",
        "event": "job.retried",
        "job_id": "7",
        "attempt": 2,
        "tenant": None,
    }


def test_json_takes_values_of_any_type_and_tracebacks() -> None:
    out = io.StringIO()
    log = logged(out, "json")
    try:
        raise ValueError("lone \udcff")
    except ValueError:
        log.exception("it failed", extra={"mine": object(), "set": {1}})
    found = json.loads(out.getvalue())
    assert "ValueError: lone \ufffd" in found["traceback"]
    assert found["traceback"].encode("utf-8")  # no lone surrogates, which jq refuses
    assert found["mine"].startswith("<object")


class Unreadable:
    def __str__(self) -> str:
        raise RuntimeError("not readable")


def circular() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = [made]
    return made


@pytest.mark.parametrize(
    "field",
    [float("nan"), float("inf"), 10**5000, circular(), Unreadable(), {Unreadable(): {(1, 2): {3}}}],
    ids=["nan", "infinite", "large", "circular", "unreadable", "keys"],
)
def test_whatever_a_program_logs_is_one_line_of_json(field: Any) -> None:
    out = io.StringIO()
    log = logged(out, "json")

    log.info("two\nlines", extra={"mine": field, "level": "FORGED", "time": "never"})

    [line] = out.getvalue().splitlines()
    found = json.loads(line, parse_constant=pytest.fail)
    assert (found["message"], found["level"]) == ("two\nlines", "INFO")
    assert found["time"].endswith("+00:00")
    assert "mine" in found


@pytest.mark.parametrize("format", ["text", "json"])
def test_arguments_that_do_not_fit_a_message_are_said_in_its_record(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.StringIO()
    log = logged(out, format)

    log.info("took %d s", "long")

    assert "took %d s (its arguments do not fit: TypeError)" in out.getvalue()
    assert capsys.readouterr().err == ""


def test_text_that_is_logged_cannot_pass_for_a_record_of_its_own() -> None:
    out = io.StringIO()
    log = logged(out)

    try:
        raise ValueError("x\n2026-11-19 00:00:00,000 ERROR forged")
    except ValueError:
        log.exception("by a user:\n2026-11-19 00:00:00,000 ERROR forged", stack_info=True)

    first, *others = out.getvalue().splitlines()
    assert first.endswith("ERROR by a user:")
    assert all(line.startswith("    ") for line in others)
    assert any(line.startswith("    Stack (most recent call last)") for line in others)


class Failing:
    def __del__(self) -> None:
        raise ValueError("at the end")


def fail() -> None:
    raise ValueError("in a thread")


def test_exceptions_that_nothing_catches_are_records() -> None:
    out = io.StringIO()
    logged(out, "json")

    thread = threading.Thread(target=fail, name="mine")
    thread.start()
    thread.join()
    Failing()
    sys.excepthook(ValueError, ValueError("in the main thread"), None)

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["exception.uncaught"] * 3
    assert [line["place"] for line in lines] == [
        "thread mine",
        "function Failing.__del__",
        "the main thread",
    ]
    assert "ValueError: in a thread" in lines[0]["traceback"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_that_an_error_repeats_are_hidden(format: str) -> None:
    out = io.StringIO()
    log = logged(out, format)

    key = "sk-proj-Zq81kdJw02mXnB73vYtRpLsE49uHcA"
    error = f"{{'password': 'hunter22', 'note': 'x'}} refused: Incorrect API key: {key}"
    log.warning("job failed: %s", error, extra={"error": error, "traceback": f"E: {error}"})
    logging.getLogger("shop.jobs").info("tried %s", error)

    assert "hunter22" not in out.getvalue()
    assert key not in out.getvalue()
    assert "'note': 'x'} refused" in out.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_format_shows_a_password(format: str) -> None:
    out = io.StringIO()
    log = logged(out, format)
    try:
        raise ValueError("no way to redis://:hunter22@h/0")
    except ValueError:
        log.exception(
            "at %s",
            "amqp://a:hunter22@h/",
            extra=event("x", url="postgresql://a:hunter22@h/x", api_key="hunter22"),
        )
    assert "at amqp://a:***@h/" in out.getvalue()
    assert "hunter22" not in out.getvalue()


def test_text_shows_no_control_characters_of_others() -> None:
    out = io.StringIO()
    logged(out).warning("an error said \033[2J\rgone\u202e")
    assert "an error said \ufffd[2J\ufffdgone\ufffd" in out.getvalue()


def test_the_field_traceback_follows_in_text() -> None:
    out = io.StringIO()
    logged(out).error("failed", extra={"traceback": "Traceback …\nValueError: x\n"})
    assert out.getvalue().endswith("ERROR failed\n    Traceback …\n    ValueError: x\n")


def test_the_level_is_the_least_that_is_logged() -> None:
    out = io.StringIO()
    log = logged(out, level="warning")
    log.info("quiet")
    assert out.getvalue() == ""


def test_a_format_or_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="log_format must be one of text, json, not 'yaml'"):
        configure_logging("yaml")
    with pytest.raises(ConfigError, match=r"log_level must be one of debug, .*, not 'loud'"):
        configure_logging(level="loud")


@pytest.mark.parametrize("formatter", [JsonFormatter, TextFormatter])
def test_an_application_names_the_formatters_in_its_own_configuration(
    formatter: type[logging.Formatter],
) -> None:
    configured = logging.config.DictConfigurator(
        {"version": 1, "formatters": {"windrow": {"()": f"windrow.logging.{formatter.__name__}"}}}
    )
    made = configured.configure_formatter(configured.config["formatters"]["windrow"])
    assert isinstance(made, formatter)


def test_names_are_counted_and_the_most_frequent_come_first() -> None:
    assert list_some({"a": 1, "b": 3}) == "b (3), a"
    assert list_some(dict.fromkeys("abcd", 1), most=2) == "a, b, and 2 more"


def test_a_misspelled_variable_is_found_with_what_was_meant() -> None:
    environment = {
        "WINDROW_DATABSE_URL": "x",
        "WINDROW_COLOUR_OF_HAY": "x",
        "WINDROW_SUPERVISOR": "1",
        "WINDROW_DATABASE_URL": "x",
        "HOME": "x",
    }
    assert unknown_variables(environment) == {
        "WINDROW_COLOUR_OF_HAY": "",
        "WINDROW_DATABSE_URL": "WINDROW_DATABASE_URL",
    }


def test_a_warning_of_python_is_one_line() -> None:
    out = io.StringIO()
    logged(out)
    warning = "/srv/shop.py:5: RuntimeWarning: coroutine 'x' was never awaited\n  x()\n"
    logging.getLogger("py.warnings").warning("%s", warning)
    assert out.getvalue().endswith(
        "WARNING /srv/shop.py:5: RuntimeWarning: coroutine 'x' was never awaited\n"
    )
