"""What a language model is asked, and what is made of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.ingest.enrich.chat import KEY, Chat, Reply, as_json, open_chat, page_of
from windrow.errors import ConfigError, EnrichError, InvalidOptions, RateLimited
from windrow.ingest.document import Document, Metadata
from windrow.ingest.enrich.llm import Model
from windrow.ingest.enrich.model_formats import enrich
from windrow.ingest.options import ScrapeOptions
from windrow.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {"price": {"type": "number"}},
    "required": ["price"],
}


@pytest.fixture
async def chat() -> AsyncIterator[Chat]:
    async with open_chat() as chat:
        yield chat


@pytest.fixture
async def model(chat: Chat) -> AsyncIterator[Model]:
    async with Model(chat.url, "barn-1", KEY) as model:
        yield model


def document() -> Document:
    return Document(metadata=Metadata(status_code=200), markdown="Hay costs 7.")


async def test_formats_of_a_model_are_made_of_the_markdown(chat: Chat, model: Model) -> None:
    """N4: summary, json, extract, answer, highlights."""
    chat.otherwise = lambda asked: as_json(price=7) if "response_format" in asked else "It is hay."
    asked = ScrapeOptions.parse(
        {
            "formats": [
                "markdown",
                "summary",
                {"type": "json", "schema": SCHEMA, "prompt": "The price"},
                {"type": "extract", "prompt": "The price"},
                {"type": "question", "question": "What is it?"},
                {"type": "highlights", "query": "hay"},
            ]
        }
    )
    made = document()
    await enrich(made, asked, model)

    assert (made.summary, made.answer, made.highlights) == ("It is hay.",) * 3
    assert (made.json, made.extract) == ({"price": 7}, {"price": 7})
    assert made.warning is None
    assert {page_of(one) for one in chat.asked} == {"Hay costs 7."}
    assert {one["model"] for one in chat.asked} == {"barn-1"}
    shapes = [one["response_format"]["type"] for one in chat.asked if "response_format" in one]
    assert shapes == ["json_schema", "json_object"]


async def test_answer_that_does_not_fit_its_schema_is_sent_back_once(
    chat: Chat, model: Model
) -> None:
    chat.replies += [Reply('{"price": "seven"}'), Reply('```json\n{"price": 7}\n```')]
    assert await model.fill("Hay costs 7.", SCHEMA) == {"price": 7}
    _, second = chat.asked
    assert second["messages"][2] == {"role": "assistant", "content": '{"price": "seven"}'}
    assert "$.price" in second["messages"][3]["content"]

    chat.replies += [Reply("Seven."), Reply("Seven!")]
    with pytest.raises(EnrichError, match="no JSON") as broken:
        await model.fill("Hay costs 7.", SCHEMA)
    assert not broken.value.transient
    assert len(chat.asked) == 4


async def test_server_that_cannot_hold_a_model_to_a_shape_is_asked_without(
    chat: Chat, model: Model
) -> None:
    chat.replies += [Reply("unknown field response_format", status=400), Reply('{"price": 1}')]
    assert await model.fill("Hay costs 1.", SCHEMA) == {"price": 1}
    assert ["response_format" in one for one in chat.asked] == [True, False]


async def test_schema_that_is_none_or_leads_elsewhere_is_refused(chat: Chat, model: Model) -> None:
    with pytest.raises(InvalidOptions, match="no JSON schema"):
        await model.fill("Hay", {"type": "hay"})
    chat.replies.append(Reply("{}"))
    with pytest.raises(InvalidOptions, match="not in it"):
        await model.fill("Hay", {"$ref": f"{chat.url}/schema.json"})


async def test_model_that_is_asked_too_often_is_left_alone_for_as_long_as_it_says(
    chat: Chat, model: Model
) -> None:
    chat.replies.append(Reply("slow down", status=429, headers={"Retry-After": "12"}))
    with pytest.raises(RateLimited) as limited:
        await model.write("Summarise", "Hay")
    assert (limited.value.key, limited.value.retry_after) == ("llm:127.0.0.1", 12)


async def test_trouble_is_tried_again_and_refusal_is_a_warning(chat: Chat, model: Model) -> None:
    wanted = ScrapeOptions.parse({"formats": ["summary"]})
    chat.replies.append(Reply("overloaded", status=503))
    with pytest.raises(EnrichError) as trouble:
        await enrich(document(), wanted, model)
    assert trouble.value.transient

    made = document()
    async with Model(chat.url, "barn-1", "another key") as refused:
        await enrich(made, wanted, refused)
    assert made.summary is None
    assert "'summary' could not be made: the model answers with 401" in (made.warning or "")
    assert "another key" not in (made.warning or "")

    async with Model("http://127.0.0.1:9", "barn-1") as nobody:
        with pytest.raises(EnrichError, match="does not answer") as silent:
            await enrich(document(), wanted, nobody)
    assert silent.value.transient


async def test_what_nobody_can_make_is_said_and_never_left_out_in_silence() -> None:
    made = document()
    wanted = {"formats": ["markdown", "summary", {"type": "json", "schema": SCHEMA}, "branding"]}
    await enrich(made, ScrapeOptions.parse(wanted), None)
    assert "'summary', 'json' could not be made: set WINDROW_LLM_URL" in (made.warning or "")
    assert "Format 'branding' is not made here." in (made.warning or "")


def test_settings_name_the_model_or_none() -> None:
    assert Model.from_settings(Settings()) is None
    given = Settings(llm_url="http://localhost/v1", llm_model="barn-1", llm_key=KEY)
    assert Model.from_settings(given) is not None
    assert KEY not in repr(given)
    with pytest.raises(ConfigError, match="llm_model"):
        Model.from_settings(Settings(llm_url="http://localhost/v1"))
