"""CSS selectors that people hand in, evaluated in time that grows with the page and the selector.

Lexbor tries every way through the ancestors: `p div div div div div` on a hundred nested elements
takes it minutes, and it holds the interpreter lock meanwhile. So only compounds (`div.note`) are
given to it; combinators between them are followed here, each with one look at every element.
Pseudo-classes that look at siblings or descendants of every element are refused on pages where
that would take long. A compound cannot be interrupted; between compounds the time is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from windrow.errors import InvalidOptions
from windrow.patterns import Budget

MAX_LENGTH: Final = 4000
MAX_NESTED: Final = 8  # pseudo-classes in each other
MAX_LOOKS: Final = 1_000_000_000  # at siblings and descendants, by one selector: about a second
_COMBINATORS: Final = frozenset(" >+~")
_CLOSING: Final = {"(": ")", "[": "]"}

# For each element these look at its siblings, or at what is in it.
_AMONG: Final = re.compile(r":nth-[a-z-]*|-of-type", re.IGNORECASE)
_BESIDE: Final = re.compile(r"[(,]\s*[+~]")
_WITHIN: Final = re.compile(r":has\(", re.IGNORECASE)

Step = tuple[str, str]  # a combinator, and the compound after it
Leads = Callable[[LexborNode], LexborNode | None]


def select(
    page: LexborHTMLParser, selector: str, option: str, budget: Budget | None = None
) -> list[LexborNode]:
    """The elements that a selector matches, in the order of the page. Raises InvalidOptions."""
    budget = budget or Budget(option)
    budget.check()
    if len(selector) > MAX_LENGTH:
        raise InvalidOptions(f"{option}: a selector is longer than {MAX_LENGTH} characters")
    try:
        if "/*" in selector:
            raise ValueError("comments are not supported")
        alternatives = {tuple(_steps(part)) for part in _split(selector, frozenset(","))}
        for steps in alternatives:
            for _, compound in steps:
                _check_arguments(compound)
        if _count_looks(page, selector) > MAX_LOOKS:
            raise InvalidOptions(
                f"{option}: {selector!r} takes too long on a page as large as this"
            )
        if [len(steps) for steps in alternatives] == [1]:
            ((_, compound),) = alternatives.pop()
            return page.css(compound)
        found = {node.mem_id for steps in alternatives for node in _follow(page, steps, budget)}
    except (SelectolaxError, ValueError) as error:
        raise InvalidOptions(f"{option}: {selector!r} is not a CSS selector: {error}") from error
    return [node for node in page.css("*") if node.mem_id in found]


def _follow(
    page: LexborHTMLParser, steps: tuple[Step, ...], budget: Budget
) -> Iterable[LexborNode]:
    (_, first), *others = steps
    nodes = page.css(first)
    for combinator, compound in others:
        budget.check()
        before = {node.mem_id for node in nodes}
        lead = _parent if combinator in " >" else _sibling
        if combinator in ">+":
            near = [(node, lead(node)) for node in page.css(compound)]
            nodes = [node for node, other in near if other and other.mem_id in before]
        else:
            known: dict[int, bool] = {}
            nodes = [node for node in page.css(compound) if _comes_after(node, lead, before, known)]
    budget.check()
    return nodes


def _comes_after(node: LexborNode, lead: Leads, before: set[int], known: dict[int, bool]) -> bool:
    """Whether an ancestor, or an earlier sibling, is one of these. Each element is asked once."""
    way: list[int] = []
    here: LexborNode | None = node
    is_after = False
    while here is not None:
        if (answer := known.get(here.mem_id)) is not None:
            is_after = answer
            break
        way.append(here.mem_id)
        here = lead(here)
        if here is not None and here.mem_id in before:
            is_after = True
            break
    known.update(dict.fromkeys(way, is_after))
    return is_after


def _parent(node: LexborNode) -> LexborNode | None:
    return node.parent


def _sibling(node: LexborNode) -> LexborNode | None:
    other = node.prev
    while other is not None and not other.is_element_node:
        other = other.prev
    return other


def _steps(text: str) -> Iterator[Step]:
    """`a > b c` as ("", "a"), (">", "b"), (" ", "c")."""
    combinator, is_first = "", True
    for part in _split(text.strip(), _COMBINATORS, keep=True):
        if part in _COMBINATORS:
            combinator = part if combinator in ("", " ") else combinator if part == " " else "?"
            continue
        if combinator == "?" or (is_first and combinator):
            raise ValueError("a combinator has nothing before it")
        yield combinator, part
        combinator, is_first = "", False
    if combinator:
        raise ValueError("a combinator has nothing after it")


def _split(text: str, at: frozenset[str], *, keep: bool = False) -> Iterator[str]:
    """The parts of a text between separators that stand outside of brackets and quotes."""
    closing: list[str] = []
    part, quote, is_escaped = "", "", False
    for char in text:
        if not is_escaped and not quote and not closing:
            sign = " " if char.isspace() else char
            if sign in at:
                if part or not keep:
                    yield part
                if keep:
                    yield sign
                part = ""
                continue
        part += char
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            closing.append(_CLOSING[char])
        elif closing and char == closing[-1]:
            closing.pop()
    if part or not keep:
        yield part


def _count_looks(page: LexborHTMLParser, selector: str) -> int:
    """At how many siblings and descendants pseudo-classes look, at the most. Lexbor counts the
    siblings of each element anew: of 5000 rows in one table it looks at 25 million."""
    counts = [len(pattern.findall(selector)) for pattern in (_AMONG, _BESIDE, _WITHIN)]
    among, beside, within = counts
    if not any(counts):
        return 0
    depths: dict[int, int] = {}
    children: Counter[int] = Counter()
    for node in page.css("*"):
        if (parent := node.parent) is not None:
            depths[node.mem_id] = depths.get(parent.mem_id, 0) + 1
            children[parent.mem_id] += 1
    # Each alternative of `:has` looks again.
    looks = sum(depths.values()) * within * (1 + selector.count(","))
    looks += sum(count * count for count in children.values()) * (among + beside)
    return looks * max(children.values(), default=1) if among and within else looks


def _check_arguments(compound: str, nested: int = 0) -> None:
    """Raise ValueError for arguments of pseudo-classes with combinators between compounds, and for
    `:has` inside of another's: Lexbor would try every way through those too."""
    if nested > MAX_NESTED:
        raise ValueError(f"pseudo-classes nested deeper than {MAX_NESTED} are not supported")
    for name, arguments in _pseudo_classes(compound):
        if "\\" in name:
            raise ValueError("escapes in names of pseudo-classes are not supported")
        if name == "has" and nested:
            raise ValueError(":has inside of another pseudo-class is not supported")
        if name.startswith("nth-") and " of " not in arguments:
            continue
        for part in _split(arguments, frozenset(",")):
            steps = list(_steps(part.strip().lstrip(">+~ ")))
            if len(steps) > 1:
                raise ValueError("combinators inside of a pseudo-class are not supported")
            for _, one in steps:
                _check_arguments(one, nested + 1)


def _pseudo_classes(compound: str) -> Iterator[tuple[str, str]]:
    """The names and arguments of those that have arguments."""
    depth, start, name_start, in_brackets = 0, 0, 0, False
    quote, is_escaped = "", False
    for at, char in enumerate(compound):
        if is_escaped or char == "\\":
            is_escaped = not is_escaped
        elif quote or char in "\"'":
            quote = "" if char == quote else quote or char
        elif char == "[" or (in_brackets and char == "]"):
            in_brackets = char == "["
        elif in_brackets:
            continue
        elif char == "(":
            start = at + 1 if depth == 0 else start
            depth += 1
        elif char == ")" and depth:
            depth -= 1
            if depth == 0:
                name = compound[name_start : start - 1].rpartition(":")[2].lower()
                yield name, compound[start:at]
                name_start = at + 1
    if depth:
        raise ValueError("a bracket is not closed")
