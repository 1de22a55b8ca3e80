"""docs/reference/events.md: every event of the stream, and every one that webhooks tell of."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import fields

from tests.reference.markdown import code, needed, page, table
from windrow.pipelines.webhooks.webhook import MEANINGS as TOLD
from windrow.pipelines.webhooks.webhook import EventName
from windrow.queue.events import FIELDS, MEANINGS, Event, EventType

HEAD = """\
What happens to jobs and groups is a stream, written by the transaction that makes it happen:
[Concepts](../concepts.md#events) says how to read it, `windrow events` shows it, `GET /events`
sends it ([Events over HTTP](../guides/events.md))."""

WEBHOOKS = """\
## Webhooks

The `type` of what a [webhook](../guides/webhooks.md) sends is `crawl.` or `batch_scrape.` and one
of these words."""


def render() -> str:
    types = [[code(one), *said_of(one)] for one in EventType]
    named = [
        [code(one.name), needed(FIELDS.get(one.name), f"Event.{one.name}")] for one in fields(Event)
    ]
    told = [[code(one), needed(TOLD.get(one), f"webhook {one}")] for one in get_args(EventName)]
    return page(
        "Events",
        HEAD,
        table(["type", "when", "`state`", "`details`"], types),
        "Every event has these fields; over HTTP `job_id` and `group_id` are `job` and `group`.",
        table(["field", "what it is"], named),
        WEBHOOKS,
        table(["word", "when"], told),
    )


def said_of(event: EventType) -> tuple[str, str, str]:
    when, states, details = MEANINGS.get(event, ("", "", ""))
    return needed(when, event), needed(states, event), details
