"""Code as pieces: definitions, each with what is written before it and its qualified name.

A class that fits stays whole, one that does not is taken apart into its members; a function too
large for a chunk is cut at its lines. Broken code is cut as far as it is understood.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import msgspec

from windrow.index.chunk.grammars import (
    CONTAINERS,
    DEFINITIONS,
    LEADING,
    TRANSPARENT,
    WRAPPERS,
    grammar_name,
    load,
)
from windrow.index.chunk.pieces import Begins, Limits, Piece, line_pieces

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

LARGEST_CODE: Final = 1_000_000  # characters; what is longer was written by a program
LONGEST_MEAN_LINE: Final = 400  # characters; lines that are longer have been minified
# Text that is not what its name says can keep a parser busy for ever; honest code takes 0.1 s/MB.
PARSE_SECONDS: Final = 5.0
DEEPEST: Final = 24  # definitions in definitions
LONGEST_NAME: Final = 100
_FUNCTION_VALUES: Final = frozenset(
    {"arrow_function", "function", "function_expression", "generator_function", "class"}
)
_BODIES: Final = frozenset(
    [
        "block",
        "body_statement",
        "class_body",
        "compound_statement",
        "declaration_list",
        "enum_body",
        "enum_class_body",
        "enum_member_declaration_list",
        "extension_body",
        "field_declaration_list",
        "interface_body",
        "object_type",
        "protocol_body",
        "statement_block",
        "template_body",
    ]
)


def code_pieces(text: str, start: int, language: str, limits: Limits) -> list[Piece] | None:
    """Pieces that tile the text from `start` on; None if it is not to be understood."""
    name = grammar_name(language)
    if name is None or not _was_written_by_hand(text):
        return None
    source = text[start:].encode()
    tree = _parse(source, name)
    if tree is None:
        return None
    found = list(_Walk(source, limits).cuts(tree.root_node, ()))
    return list(_tiles(text, start, source, found, limits))


def _was_written_by_hand(text: str) -> bool:
    return len(text) <= LARGEST_CODE and len(text) <= LONGEST_MEAN_LINE * (text.count("\n") + 10)


def _parse(source: bytes, name: str) -> Tree | None:
    from tree_sitter import Parser

    with warnings.catch_warnings():
        # What is to come in its place ends the process (0.25.2 and 0.26.0).
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(load(name), timeout_micros=int(PARSE_SECONDS * 1_000_000))
    try:
        return parser.parse(source)
    except ValueError:  # the time was up
        return None


class _Cut(msgspec.Struct, frozen=True, gc=False):
    """Here a piece begins, at a byte; it ends where the next one begins."""

    place: int
    names: tuple[str, ...]
    begins: Begins


class _Walk:
    """Where code is cut. Looks no deeper than it must: what fits into a chunk is not entered."""

    def __init__(self, source: bytes, limits: Limits) -> None:
        self._source = source
        self._limits = limits

    def cuts(self, node: Node, names: tuple[str, ...], depth: int = 0) -> Iterator[_Cut]:
        leading: int | None = None  # where what belongs to the next definition begins
        before: Node | None = None
        for child in node.named_children:  # brackets belong to what is before them
            if child.type in LEADING:
                # A remark about what stands before it belongs to that.
                if leading is None and not _stands_behind(child, before):
                    leading = child.start_byte
            else:
                yield from self._cuts_of(
                    child, child.start_byte if leading is None else leading, names, depth
                )
                leading = None
            before = child
        if leading is not None:
            yield _Cut(leading, names, Begins.ANYWHERE)

    def _cuts_of(
        self, node: Node, place: int, names: tuple[str, ...], depth: int
    ) -> Iterator[_Cut]:
        definition = _definition(node)
        if definition is None:
            yield _Cut(place, names, Begins.ANYWHERE)
            if node.type in TRANSPARENT and depth < DEEPEST:
                yield from self.cuts(node, names, depth + 1)
            return
        names = (*names, *self._name(definition))
        yield _Cut(place, names, Begins.RATHER_ANEW)
        is_too_large = node.end_byte - place > self._limits.largest
        is_entered = is_too_large and definition.type in CONTAINERS and depth < DEEPEST
        if is_entered and (body := _body(definition)):
            yield from self.cuts(body, names, depth + 1)

    def _name(self, node: Node) -> tuple[str, ...]:
        found = _name_node(node)
        name = "" if found is None else self._text(found)
        if receiver := node.child_by_field_name("receiver"):
            # Of a method in Go: "(s *Server[T])" is Server's.
            owner = re.sub(r"\[.*", "", self._text(receiver)).strip("()* ").split(" ")[-1]
            return tuple(part for part in (owner.lstrip("*"), name) if part)
        return (name,) if name else ()

    def _text(self, node: Node) -> str:
        name = self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return " ".join(name.split())[:LONGEST_NAME]


def _stands_behind(node: Node, before: Node | None) -> bool:
    """Whether a node begins on the line where the one before it ends."""
    if before is None:
        return False
    end = before.end_point
    # One may reach over the end of its line.
    return bool(end.column) and node.start_point.row == end.row


def _definition(node: Node) -> Node | None:
    """The definition that a node is, or that it is written around."""
    kind = node.type
    if kind in DEFINITIONS:
        return node
    if kind not in WRAPPERS:
        return None
    for child in node.named_children[:8]:
        if child.type in DEFINITIONS or _has_function_value(child):
            return child
        if child.type in WRAPPERS and (inner := _definition(child)):
            return inner
    return None


def _has_function_value(node: Node) -> bool:
    """`const load = async () => {…}`, `exports.load = function () {…}`"""
    if node.type not in ("variable_declarator", "assignment_expression"):
        return False
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    return value is not None and value.type in _FUNCTION_VALUES


def _name_node(node: Node) -> Node | None:
    """Where a definition is named: in C that is deep in what it declares."""
    for field in ("name", "left", "type") if node.type != "type_definition" else ("declarator",):
        if found := node.child_by_field_name(field):
            if node.type == "function_definition" and field == "type":
                break  # of a function in C this is what it returns
            return found
    inner = node.child_by_field_name("declarator")
    for _ in range(8):
        if inner is None or (deeper := inner.child_by_field_name("declarator")) is None:
            break
        inner = deeper
    if inner is None and node.type == "type_declaration":  # Go
        return next((spec.child_by_field_name("name") for spec in node.named_children), None)
    return inner


def _body(node: Node) -> Node | None:
    if found := node.child_by_field_name("body"):
        return found
    return next((child for child in node.named_children if child.type in _BODIES), None)


def _tiles(
    text: str, start: int, source: bytes, cuts: list[_Cut], limits: Limits
) -> Iterator[Piece]:
    """Cuts as pieces, in characters; what is too large is cut again, at its lines."""
    places = _characters(source, [cut.place for cut in cuts])
    opened, names, begins = start, cast("tuple[str, ...]", ()), Begins.ANYWHERE
    for offset, cut in zip(places, cuts, strict=True):
        place = _line_start(text, opened, start + offset)
        yield from _pieces(text, opened, place, limits, names, begins)
        opened, names, begins = place, cut.names, cut.begins
    yield from _pieces(text, opened, len(text), limits, names, begins)


def _pieces(
    text: str, start: int, end: int, limits: Limits, names: tuple[str, ...], begins: Begins
) -> list[Piece]:
    if end - start > limits.largest:
        return line_pieces(text, start, end, limits, names)
    return [Piece(start, end, names, begins)] if end > start else []


def _line_start(text: str, after: int, place: int) -> int:
    """Where the line of a place begins, if only white space is before it on that line."""
    line = max(text.rfind("\n", after, place) + 1, after)
    return line if not text[line:place].strip() else place


def _characters(source: bytes, places: list[int]) -> list[int]:
    """Byte offsets, in order, as offsets in characters."""
    if source.isascii():
        return places
    found, before, count = [], 0, 0
    for place in places:
        count += len(source[before:place].decode("utf-8", "replace"))
        before = place
        found.append(count)
    return found
