"""Formats that a language model makes of a page: summary, json, extract, answers and highlights."""

from __future__ import annotations

from typing import Any, Final

from windrow.errors import EnrichError
from windrow.ingest.document import Document
from windrow.ingest.enrich.llm import LONGEST_TEXT, Model
from windrow.ingest.options import Format, FormatName, ScrapeOptions

BY_A_MODEL: Final[tuple[FormatName, ...]] = (
    "summary",
    "json",
    "extract",
    "question",
    "highlights",
    "query",
)
# Formats of the API that nothing here makes.
NOT_MADE: Final[tuple[FormatName, ...]] = (
    "deterministicJson",
    "branding",
    "menu",
    "audio",
    "video",
)
SUMMARY: Final = "Summarise the page in a few sentences, in the language of the page."
QUESTION: Final = "Answer this question by what the page says, and say so if it does not: "
HIGHLIGHTS: Final = (
    "Quote, word for word, the passages of the page that matter most for this, one in each line: "
)
MISSING: Final = "set WINDROW_LLM_URL and WINDROW_LLM_MODEL to an OpenAI-compatible endpoint"


async def enrich(document: Document, options: ScrapeOptions, model: Model | None) -> None:
    """Add what a model makes of the page. What cannot be had is a warning, unless another try may
    help: then it is raised."""
    for name in NOT_MADE:
        if options.wants(name):
            document.warn(f"Format {name!r} is not made here.")
    wanted = [one for one in options.formats if one.type in BY_A_MODEL]
    if not wanted:
        return
    if model is None:
        names = ", ".join(repr(one.type) for one in wanted)
        document.warn(f"No language model is set, so {names} could not be made: {MISSING}.")
        return
    if len(document.markdown or "") > LONGEST_TEXT:
        document.warn(f"The model was given the first {LONGEST_TEXT} characters of the page.")
    for one in wanted:
        await _add(document, one, model)


async def compare_fields(
    document: Document, wanted: Format, before: str, model: Model | None
) -> None:
    """`changeTracking` in the mode json: each field as it was and as it is."""
    tracking = document.change_tracking
    if tracking is None or tracking.change_status != "changed":
        return
    if model is None:
        document.warn(f"No language model is set, so no fields could be compared: {MISSING}.")
        return
    try:
        old = await model.fill(before, wanted.schema, wanted.prompt)
        new = await model.fill(document.markdown or "", wanted.schema, wanted.prompt)
    except EnrichError as error:
        _warn(document, "changeTracking", error)
        return
    tracking.json = _side_by_side(old, new)


async def _add(document: Document, wanted: Format, model: Model) -> None:
    text = document.markdown or ""
    try:
        match wanted.type:
            case "summary":
                document.summary = await model.write(SUMMARY, text)
            case "json":
                document.json = await model.fill(text, wanted.schema, wanted.prompt)
            case "extract":
                document.extract = await model.fill(text, wanted.schema, wanted.prompt)
            case "question":
                document.answer = await model.write(f"{QUESTION}{wanted.question}", text)
            case "highlights":
                document.highlights = await model.write(f"{HIGHLIGHTS}{wanted.query}", text)
            case _:
                is_quote = wanted.mode == "directQuote"
                asked = f"{HIGHLIGHTS if is_quote else QUESTION}{wanted.prompt}"
                document.answer = await model.write(asked, text)
    except EnrichError as error:
        _warn(document, wanted.type, error)


def _warn(document: Document, name: str, error: EnrichError) -> None:
    if error.transient:
        raise error
    document.warn(f"Format {name!r} could not be made: {error}.")


def _side_by_side(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {"previous": old, "current": new}
    return {
        name: {"previous": old.get(name), "current": new.get(name)}
        for name in dict.fromkeys([*old, *new])
    }
