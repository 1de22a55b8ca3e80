"""docs/reference/python.md: what `windrow` and `windrow.testing` give to programs."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import windrow
from tests.reference.markdown import needed, page, prose
from windrow import testing
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler

HEAD = """\
`from windrow import …`: these names are kept as they are; what is not here may change.
`Queue.sync(url)` is the same queue for code that blocks: it has
every method of `Queue`, not awaited. [Concepts](../concepts.md) explains the words; the errors have
[a page of their own](errors.md)."""
# Of a claimed job, for the worker.
OWN = {"bind_to", "decode_result_as", "has_begun_tx", "leased_run", "result_type"}
HANDLER = """\
## Handler

What `@handler` makes of a function (`windrow.worker.registry.Handler`). `Handler[P, R]` takes
payloads of type P, and R is what the function returns: a value or an outcome."""
TESTING = """\
## windrow.testing

For [the tests of your own code](../guides/testing.md)."""


def render() -> str:
    parts = [described(windrow, name) for name in windrow.__all__]
    parts += [HANDLER, *members(Handler, "##")]
    return page(
        "Python", HEAD, *parts, TESTING, *[described(testing, name) for name in testing.__all__]
    )


def described(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    level = "##" if module is windrow else "###"
    words = needed(inspect.getdoc(found), name)
    parts = [f"{level} {name}", paragraph(words)]
    if not inspect.isclass(found) or found is not Queue:
        parts.insert(1, block(name, found))
    if inspect.isclass(found):
        parts += members(found, level)
    return "\n\n".join(parts)


def members(owner: type, level: str) -> list[str]:
    """The methods and properties, in the order of their names."""
    parts = []
    for name in sorted(vars_of(owner)):
        found = inspect.getattr_static(owner, name)
        if isinstance(found, property):
            words = needed(inspect.getdoc(found), f"{owner.__name__}.{name}")
            parts.append(f"**`{name}`**: {paragraph(words)}")
        elif callable(getattr(owner, name)):
            words = needed(inspect.getdoc(getattr(owner, name)), f"{owner.__name__}.{name}")
            title = f"{level}# {owner.__name__}.{name}"
            parts.append(f"{title}\n\n{block(name, getattr(owner, name))}\n\n{paragraph(words)}")
    return parts


def vars_of(owner: type) -> set[str]:
    """The public names of a class and of those of Windrow's that it is made of."""
    ours = [one for one in owner.__mro__ if one.__module__.startswith("windrow.")]
    public = {name for one in ours for name in vars(one) if not name.startswith("_")}
    return public - OWN


def paragraph(words: str) -> str:
    return prose(words.split("\n\n")[0])


def block(name: str, found: Any) -> str:
    """Its signature, as it would be written."""
    is_async = inspect.iscoroutinefunction(found)
    signature = inspect.signature(found)
    given = signature.parameters.values()
    shown = [one for one in given if one.name not in ("self", "cls") and one.name[0] != "_"]
    spelled = ", ".join(arguments(shown))
    back = spell(signature.return_annotation)
    tail = f" -> {back}" if back and back != "None" and not inspect.isclass(found) else ""
    text = f"{'await ' if is_async else ''}{name}({spelled}){tail}"
    return "\n".join(f"    {line}" for line in fold(text))


def arguments(parameters: list[inspect.Parameter]) -> list[str]:
    told = []
    is_starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not is_starred:
            told.append("*")
            is_starred = True
        prefix = "*" if one.kind is one.VAR_POSITIONAL else ""
        prefix = "**" if one.kind is one.VAR_KEYWORD else prefix
        is_starred = is_starred or prefix == "*"
        kind = spell(one.annotation)
        text = f"{prefix}{one.name}" + (f": {kind}" if kind else "")
        told.append(text if one.default is one.empty else f"{text} = {value(one.default)}")
    return told


def spell(annotation: Any) -> str:
    if annotation in (inspect.Parameter.empty, inspect.Signature.empty):
        return ""
    if isinstance(annotation, str):
        return annotation
    text = inspect.formatannotation(annotation)
    for module in ("windrow.queue.job.", "windrow.queue.records.", "typing.", "datetime."):
        text = text.replace(module, "")
    return text.replace("NoneType", "None")


def value(default: Any) -> str:
    """A default; one that only says that nothing was given has no other spelling."""
    text = repr(default)
    return "…" if text.startswith("<") else text


def fold(text: str, width: int = 96) -> list[str]:
    """Lines of a signature, broken after commas."""
    lines, rest = [], text
    while len(rest) > width and (place := rest.rfind(", ", 0, width)) > 0:
        lines.append(rest[: place + 1])
        rest = "    " + rest[place + 2 :]
    return [*lines, rest]
