"""Webhooks: which may be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.errors import Blocked, InvalidOptions
from windrow.ingest.fetch.guard import Guard
from windrow.pipelines.webhooks.webhook import Webhook
from windrow.settings import Settings


def check_webhook(settings: Settings, webhook: str | Mapping[str, Any]) -> None:
    """Refuse early what would be refused when it is sent: what is wrong, and what is private.
    Raises InvalidOptions."""
    made = Webhook.parse(webhook)
    try:
        Guard.from_settings(settings).check_url(made.url)
    except Blocked as error:
        why = str(error).removeprefix(f"{error.url}: ")
        raise InvalidOptions(
            f"webhook.url: {why}; see the settings allow_hosts and allow_private_networks"
        ) from error
