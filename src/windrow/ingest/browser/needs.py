"""Which scrapes need a browser: those that ask for what only a browser can do."""

from __future__ import annotations

from windrow.ingest.options import ScrapeOptions


def needs_browser(options: ScrapeOptions) -> bool:
    return bool(reason(options))


def reason(options: ScrapeOptions) -> str:
    """What it is that needs one, in the words of the options; empty if nothing does."""
    if options.wants("screenshot"):
        return "format 'screenshot'"
    if options.actions:
        return "actions"
    if options.wait_for:
        return "waitFor"
    return "mobile" if options.mobile else ""
