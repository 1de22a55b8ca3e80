"""What is said in a text, in short: by a model, or by the text's own words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.ingest.enrich.chat import KEY, Chat, Reply, as_json, open_chat, page_of
from windrow.errors import EnrichError, RateLimited
from windrow.ingest.enrich.analysis import (
    LOCAL,
    Analysis,
    analyse,
    find_action_items,
    find_keywords,
    split_sentences,
)
from windrow.ingest.enrich.llm import Model

TALK = """
Hello. The combine harvester broke down in the north field. We lost two days of harvest because
the harvester needs a new belt. I will order the belt from the dealer tomorrow. The weather report
promises rain on Friday, so the harvest in the north field has to wait. Could you call the dealer
about the price of the belt? Okay, bye.
"""
SAID = as_json(title="A belt", summary="It broke.", topics=["belt", " belt"], action_items=[])


@pytest.fixture
async def chat() -> AsyncIterator[Chat]:
    async with open_chat() as chat:
        yield chat


@pytest.fixture
async def model(chat: Chat) -> AsyncIterator[Model]:
    async with Model(chat.url, "barn-1", KEY) as model:
        yield model


class Memory(dict[str, Any]):
    """What `job.step` is to a job."""

    async def step(self, name: str, call: Callable[[], Awaitable[str]], /) -> Any:
        if name not in self:
            self[name] = await call()
        return self[name]


async def test_without_a_model_the_text_is_quoted() -> None:
    """P7: both providers have a local default that needs no key."""
    made = await analyse(TALK, None)
    assert made.made_by == LOCAL
    assert "harvester" in made.summary
    assert len(made.summary) < len(TALK)
    assert all(sentence in " ".join(TALK.split()) for sentence in made.summary.split(". ")[:1])
    assert {"belt", "north field"} <= set(made.topics)
    assert [one.split()[0] for one in made.action_items] == ["I", "Could"]
    assert 0 < len(made.title) <= 80


async def test_text_that_says_nothing_has_no_analysis_and_asks_nobody(
    chat: Chat, model: Model
) -> None:
    assert await analyse(" \n", model) == Analysis()
    assert chat.asked == []


async def test_model_is_asked_for_all_of_it_at_once(chat: Chat, model: Model) -> None:
    chat.replies.append(Reply(SAID))
    made = await analyse(TALK, model)
    assert made == Analysis("A belt", "It broke.", ["belt"], [], "barn-1")
    [asked] = chat.asked
    assert page_of(asked) == TALK
    assert asked["response_format"]["type"] == "json_schema"


async def test_answers_that_were_paid_for_are_asked_for_once(chat: Chat, model: Model) -> None:
    """A crash or a refusal after an answer costs no second one, of the repaired answer either."""
    memory = Memory()
    chat.replies += [Reply('{"title": 7}'), Reply("busy", 503), Reply(SAID)]
    with pytest.raises(EnrichError, match="503") as trouble:
        await analyse(TALK, model, memory.step)
    assert trouble.value.transient
    assert (await analyse(TALK, model, memory.step)).title == "A belt"
    assert (await analyse(TALK, model, memory.step)).title == "A belt"
    assert len(chat.asked) == 3


async def test_answer_that_does_not_fit_twice_is_given_up(chat: Chat, model: Model) -> None:
    chat.replies += [Reply("[]"), Reply("{}")]
    with pytest.raises(EnrichError, match="does not fit") as given_up:
        await analyse(TALK, model)
    assert not given_up.value.transient


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"finish_reason": "length"}, "cut off"),
        ({"finish_reason": "content_filter"}, "refuses"),
        ({"message": {"content": None, "refusal": "I cannot"}}, "I cannot"),
    ],
)
async def test_what_would_be_the_same_again_is_not_asked_again(
    chat: Chat, model: Model, choice: dict[str, Any], said: str
) -> None:
    chat.replies.append(Reply("{", choice=choice))
    with pytest.raises(EnrichError, match=said) as refused:
        await analyse(TALK, model)
    assert not refused.value.transient
    assert len(chat.asked) == 1


async def test_no_credit_is_not_being_asked_too_often(chat: Chat, model: Model) -> None:
    headers = {"retry-after-ms": "1500"}
    chat.replies += [
        Reply("slow down", 429, headers=headers),
        Reply("You exceeded your quota", 429, headers=headers, code="insufficient_quota"),
    ]
    with pytest.raises(RateLimited) as limited:
        await analyse(TALK, model)
    assert limited.value.retry_after == 1.5
    with pytest.raises(EnrichError, match="You exceeded your quota") as broke:
        await analyse(TALK, model)
    assert not broke.value.transient


def test_captions_without_full_stops_are_cut_by_their_words() -> None:
    parts = list(split_sentences("hay " * 500))
    assert max(len(part.split()) for part in parts) == 24
    assert sum(len(part.split()) for part in parts) == 500


def test_russian_is_read_too() -> None:
    text = "Здравствуйте. Счёт за сено не пришёл. Я отправлю счёт за сено завтра. До свидания."
    assert "счёт" in find_keywords(text, 5)
    assert find_action_items(text, 5) == ["Я отправлю счёт за сено завтра."]
