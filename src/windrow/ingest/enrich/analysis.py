"""`analyse`: what is said in a text, in short: title, summary, topics, action items.

By the language model that is set, as JSON that is held against `SCHEMA`; without one by
`extract_analysis`, which quotes the text itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from windrow.errors import EnrichError
from windrow.ingest.enrich.extractive import (
    find_action_items,
    find_keywords,
    find_sentences,
    shorten,
)
from windrow.ingest.enrich.llm import Model, Remember, forget

LOCAL: Final = "local"  # who has analysed, where no model is set
TITLE_CHARACTERS: Final = 120
MOST_TOPICS: Final = 12
MOST_ACTION_ITEMS: Final = 50
PROMPT: Final = (
    "The text is the transcript of a recording. Give it a short title, summarise it in a few "
    "sentences, name its topics in one to three words each, and list what somebody has promised "
    "or was asked to do, one sentence each, naming who if that is said; an empty list if there is "
    "nothing. Write in the language of the text."
)
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "summary": {"type": "string", "minLength": 1},
        "topics": _TEXTS,
        "action_items": _TEXTS,
    },
    "required": ["title", "summary", "topics", "action_items"],
    "additionalProperties": False,
}


class Analysis(msgspec.Struct, frozen=True):
    title: str = ""
    summary: str = ""
    topics: list[str] = []
    action_items: list[str] = []
    made_by: str = LOCAL


async def analyse(text: str, model: Model | None, remember: Remember = forget) -> Analysis:
    """What is said in a text; of one that says nothing, nothing. A model's answers are paid for:
    give `job.step` as `remember`, and a second run has those of the first. Raises EnrichError and
    RateLimited."""
    if not text.strip():
        return Analysis()
    if model is None:
        return await asyncio.to_thread(extract_analysis, text)
    return _read(await model.fill(text, SCHEMA, PROMPT, remember), model.name)


def extract_analysis(text: str) -> Analysis:
    """Takes CPU time: call it in a thread."""
    sentences = find_sentences(text, 4)
    return Analysis(
        title=shorten(find_sentences(text, 1)[0] if sentences else text, 80),
        summary=" ".join(sentences),
        topics=find_keywords(text, MOST_TOPICS),
        action_items=find_action_items(text, 10),
    )


def _read(answer: Any, model: str) -> Analysis:
    try:
        made = msgspec.convert(answer, Analysis)
    except msgspec.ValidationError as error:
        raise EnrichError(f"the model's answer does not fit: {error}") from error
    return Analysis(
        title=shorten(made.title.strip(), TITLE_CHARACTERS),
        summary=made.summary.strip(),
        topics=_distinct(made.topics)[:MOST_TOPICS],
        action_items=_distinct(made.action_items)[:MOST_ACTION_ITEMS],
        made_by=model,
    )


def _distinct(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(text.strip() for text in texts if text.strip()))
