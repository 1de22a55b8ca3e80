"""Regular expressions that people hand in. The one place that compiles them.

They run on RE2, whose time grows linearly with the text whatever the expression: Python's `re` can
take exponential time and holds the interpreter lock meanwhile, so that one tenant's expression
would stop every other request of the process. RE2 has no lookaround and no back-references.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import re2

from windrow.errors import InvalidOptions

MAX_PATTERNS: Final = 1000
MAX_PATTERN_LENGTH: Final = 2000
# Instructions of all programs of one list: what a search costs grows with them. A literal takes one
# for each byte.
MAX_PROGRAM_SIZE: Final = 30_000
MAX_PATTERN_MEMORY: Final = 128 * 1024  # bytes, of one program and its cache of states
MAX_SEARCH_SECONDS: Final = 5.0  # of processor time, for one page

_LOOKAROUND: Final = ("(?=", "(?!", "(?<=", "(?<!")
# Python and RE2 name the end of the text differently; neither engine takes the other's name.
_END: Final = re.compile(r"(\\\\)|\\Z")
_SURROGATES: Final = {code: 0x10F000 + code - 0xD800 for code in range(0xD800, 0xE000)}


class Pattern:
    """A compiled expression."""

    __slots__ = ("_program", "text")

    def __init__(self, text: str, program: Any) -> None:
        self.text = text
        self._program = program

    @property
    def size(self) -> int:
        return int(self._program.programsize)

    def is_in(self, text: str) -> bool:
        """Whether the expression matches anywhere in a text."""
        return self._program.search(_encoded(text)) is not None

    def is_all_of(self, text: str) -> bool:
        """Whether the expression matches a text as a whole."""
        return self._program.fullmatch(_encoded(text)) is not None


class Alternatives:
    """Expressions of which the first that matches a whole text is looked for."""

    __slots__ = ("_blocks",)

    BLOCK: Final = 100  # expressions in one program, and the characters in it
    BLOCK_LENGTH: Final = 20_000
    MEMORY: Final = 8 * 1024 * 1024

    def __init__(self, expressions: Sequence[str], name: str) -> None:
        """The expressions have no groups of their own."""
        self._blocks: list[tuple[int, Any, Any]] = []
        for start, end in self._bounds(expressions):
            block = "|".join(f"({one})" for one in expressions[start:end])
            self._blocks.append(
                (
                    start,
                    _compile(block, name, self.MEMORY, dot_all=True),
                    _compile(block, name, self.MEMORY, dot_all=True, never_capture=False),
                )
            )

    def _bounds(self, expressions: Sequence[str]) -> Iterator[tuple[int, int]]:
        start = length = 0
        for at, expression in enumerate(expressions):
            if at > start and (
                at - start == self.BLOCK or length + len(expression) > self.BLOCK_LENGTH
            ):
                yield start, at
                start, length = at, 0
            length += len(expression)
        if expressions:
            yield start, len(expressions)

    def first(self, text: str) -> int | None:
        """The place of the first expression that matches the whole text."""
        encoded = _encoded(text)
        for start, program, with_groups in self._blocks:
            # Groups make a match several times slower, and most texts match nothing.
            if program.fullmatch(encoded) is not None:
                found = with_groups.fullmatch(encoded)
                return start + int(found.lastindex) - 1
        return None


class Budget:
    """The processor time that searches of one thread may take together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._until = time.thread_time() + MAX_SEARCH_SECONDS

    def check(self) -> None:
        """Raise InvalidOptions once the time is used up."""
        if time.thread_time() > self._until:
            raise InvalidOptions(
                f"{self._name}: matching one page took more than {MAX_SEARCH_SECONDS:g} s: "
                "use fewer or simpler ones"
            )


def compile_patterns(texts: Sequence[str], name: str) -> list[Pattern]:
    """The patterns of one option. Raises InvalidOptions, which names the option and the pattern."""
    if len(texts) > MAX_PATTERNS:
        raise InvalidOptions(f"{name} has {len(texts)} patterns; {MAX_PATTERNS} are the most")
    patterns: list[Pattern] = []
    size = 0
    for text in texts:
        patterns.append(compile_pattern(text, name))
        size += patterns[-1].size
        if size > MAX_PROGRAM_SIZE:  # checked as it grows: compiling takes time too
            raise InvalidOptions(
                f"{name}: the patterns are too large together: the first {len(patterns)} compile "
                f"to {size} instructions, {MAX_PROGRAM_SIZE} are the most"
            )
    return patterns


def compile_pattern(text: str, name: str, *, dot_all: bool = False) -> Pattern:
    """One pattern. Raises InvalidOptions, which names the option and the pattern."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise InvalidOptions(f"a pattern of {name} is longer than {MAX_PATTERN_LENGTH} characters")
    return Pattern(text, _compile(text, name, MAX_PATTERN_MEMORY, dot_all=dot_all))


def _compile(
    text: str, name: str, memory: int, *, never_capture: bool = True, dot_all: bool = False
) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.never_capture = never_capture
    options.dot_nl = dot_all
    options.log_errors = False
    expression = _END.sub(lambda found: found[1] or r"\z", text)
    try:
        return re2.compile(_encoded(expression), options)
    except re2.error as error:
        raise InvalidOptions(f"{name}: {_shown(text)} {_explain(error)}") from error


def _explain(error: Exception) -> str:
    said = str(error.args[0].decode("utf-8", "replace"))
    what = said.rpartition(": ")[2]
    if what in _LOOKAROUND:
        return f"is not supported: lookaround, {what!r}"
    if said.startswith("invalid escape sequence") and what[1:].isdigit():
        return f"is not supported: back-references, {what!r}"
    if said.startswith("invalid perl operator"):
        return f"is not supported: {what!r}"
    if said.startswith("pattern too large"):
        return "is too large once its repetitions are written out"
    return f"is no regular expression: {said}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


def _encoded(text: str) -> bytes:
    """UTF-8. Lone surrogates, as in file names that are no UTF-8, become private characters."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.translate(_SURROGATES).encode()
