"""The pages of the reference, and who renders each."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference import commands, errors, events, http, python, settings, sql, stores

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands.render,
    "errors.md": errors.render,
    "events.md": events.render,
    "http.md": http.render,
    "python.md": python.render,
    "settings.md": settings.render,
    "sql.md": sql.render,
    "stores.md": stores.render,
}
