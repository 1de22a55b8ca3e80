"""What a request says about its webhook."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from windrow.api.bodies import take
from windrow.services.webhooks import check_webhook


def take_webhook(request: Request, body: dict[str, Any]) -> str | dict[str, Any] | None:
    """The webhook of a body, which may be used as far as is known before it is."""
    webhook: str | dict[str, Any] | None = take(body, "webhook", (str, dict))
    if webhook is not None:
        check_webhook(request.app.state.settings, webhook)
    return webhook
