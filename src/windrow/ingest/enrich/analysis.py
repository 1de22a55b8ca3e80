"""`analyse`: what is said in a text, in short: title, summary, topics, action items.

By the language model that is set, as JSON that is held against `SCHEMA`; without one by
`extract_analysis`, which quotes the text itself: its weightiest sentences, its keywords, its
promises. A sentence weighs as much as its words are frequent in the text, words that are frequent
everywhere left out. That knows English and Russian; of other languages the long words count.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from windrow.errors import EnrichError
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

WORDS_OF_A_LINE: Final = 24  # of text without full stops, as captions often are
FEWEST_WORDS: Final = 4  # of a sentence worth quoting
MOST_WORDS: Final = 60  # of a sentence that can be quoted
MOST_SENTENCES: Final = 20_000  # of a text; what comes after is not looked at
_END: Final = re.compile(r"(?<=[.!?…])[\"'»”)]*\s+|\n+")
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_COMMON_WORDS: Final = """
a about above after again all also am an and any are aren't as at back be because been before
being below both but by can can't could did didn't do does doesn't doing don't down during each
even ever every few for from further get go going got had has have having he he's her here hers
him his how i i'd i'll i'm i've if in into is isn't it it's its itself just know let let's like
look lot make many may me mean might more most much must my no nor not now of off oh ok okay on
once one only or other our out over own put really right said same say see she should so some
such take than that that's the their them then there there's these they they're thing things
think this those through to too two um uh under until up us very want was way we we'll we're
we've well were what when where which while who why will with would yeah yes you you'll you're
your yours today tomorrow please thank thanks hello hi bye good need
а без более бы был была были было быть в вам вас весь во вот все всё всего вы где да даже для до
его ее её если есть еще ещё же за здесь и из или им их к как какой ко когда который кто ли либо
меня мне может можно мой мы на над надо наш не него нее неё нет ни но ну о об однако он она они
оно от очень по под при про раз с сам себя со так также такой там те тебя то того тоже той
только том тут ты у уже уж хотя чего чей чем что чтобы чье чья эта эти это этот я
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_PROMISE: Final = re.compile(
    r"\b(?:i|we|you|he|she|they)(?:'ll| will| shall|'m going to|'re going to| am going to"
    r"| are going to| is going to| need to| needs to| have to| has to| must| should| promise)\b"
    r"|\b(?:please|make sure|don't forget|remember to|let's|follow up|action item|to-?do)\b"
    r"|\b(?:can|could|would|will) you\b"
    r"|\b(?:нужно|надо|необходимо|должен|должна|должны|обещаю|сделаю|отправлю|пришлю|позвоню"
    r"|перезвоню|подготовлю|проверю|пожалуйста|давайте|не забудь\w*)\b",
    re.IGNORECASE,
)


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


def find_sentences(text: str, most: int) -> list[str]:
    """The weightiest sentences, in the order of the text. Of two that say the same, the first."""
    sentences = list(dict.fromkeys(split_sentences(text)))
    weights = _weights(sentences)
    worth = [one for one in sentences if FEWEST_WORDS <= len(one.split()) <= MOST_WORDS]
    chosen = sorted(worth or sentences, key=lambda one: -_weight(one, weights))[:most]
    return [one for one in sentences if one in set(chosen)]


def find_keywords(text: str, most: int) -> list[str]:
    """The words, and the pairs of words, that the text comes back to, the most frequent first."""
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for sentence in split_sentences(text):
        before: str | None = None
        for word in _words(sentence):
            telling = word if _is_telling(word) else None
            if telling:
                words[telling] += 1
                if before:
                    pairs[f"{before} {telling}"] += 1
            before = telling
    kept = {pair: count for pair, count in pairs.items() if count > 1}
    for pair, count in kept.items():
        for word in pair.split():  # a word that is said in a pair only is no keyword beside it
            words[word] -= count
    weighed = [(count * 1.5, pair) for pair, count in kept.items()]
    weighed += [(float(count), word) for word, count in words.items() if count > 0]
    return [word for _, word in sorted(weighed, key=lambda one: (-one[0], one[1]))][:most]


def find_action_items(text: str, most: int) -> list[str]:
    """Sentences in which somebody promises something, or is asked to do it."""
    found = [one for one in split_sentences(text) if _PROMISE.search(one)]
    return [shorten(one, 300) for one in dict.fromkeys(found)][:most]


def split_sentences(text: str) -> Iterator[str]:
    """By full stops and lines; what has neither is cut by its words."""
    count = 0
    for part in _END.split(text):
        words = part.split()
        step = len(words) if len(words) <= MOST_WORDS else WORDS_OF_A_LINE
        for start in range(0, len(words), step or 1):
            if (count := count + 1) > MOST_SENTENCES:
                return
            yield " ".join(words[start : start + step])


def shorten(text: str, most: int) -> str:
    """At most so many characters, cut between words."""
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    cut = flat[: most - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut).rstrip(",;:.-") + "…"


def _weights(sentences: list[str]) -> Counter[str]:
    return Counter(word for one in sentences for word in _words(one) if _is_telling(word))


def _weight(sentence: str, weights: Counter[str]) -> float:
    words = _words(sentence)
    telling = {word for word in words if _is_telling(word)}
    # The square root: by the mean alone the shortest win, by the sum the longest.
    return sum(weights[word] for word in telling) / math.sqrt(max(1, len(words)))


def _words(sentence: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(sentence)]


def _is_telling(word: str) -> bool:
    return len(word) > 2 and word not in _COMMON
