"""The seeds' own statements, taken out of the documents where these are at hand.

They are looked for in the folder that WINDROW_SEEDS names, else in ../shared/seeds beside the
repository. A module that says `SEED = "004"` gets the fixture `reading`: its statements in their
order, each of which must be run, or compared with what Windrow has. The summary of the run prints
how many were.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).parent.parent.parent
ABSENT: Final = (
    "the seeds' documents are not there: name their folder with WINDROW_SEEDS to run their own SQL"
)
_BLOCK: Final = re.compile(r"^([ \t]*)```(\w+)\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_TEMPLATE: Final = re.compile(r"`\s*((?:SELECT|INSERT|UPDATE|DELETE|WITH)\b[^`]*)`", re.IGNORECASE)
_CRON: Final = re.compile(r"SELECT cron\.schedule\('(\w+)', '([^']+)', \$\$(.*)\$\$\)", re.DOTALL)
# What hides a semicolon: a comment, a text, a name, a text between dollars.
_TOKEN: Final = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|;", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DocumentStatement:
    """One statement of a document."""

    text: str  # without comments and without the semicolon
    line: int  # of the block that it stands in
    cron: str | None = None  # the name of the cron job that it is the body of

    @property
    def is_definition(self) -> bool:
        """Whether it makes something, to be compared with what a dialect has."""
        return re.match(r"create\b", self.text, re.IGNORECASE) is not None

    def __str__(self) -> str:
        return f"line {self.line}: {' '.join(self.text.split())[:60]}"


def find_document(seed: str) -> str | None:
    """The text of a document by its number; None where there is none."""
    folder = Path(os.environ.get("WINDROW_SEEDS") or REPOSITORY.parent / "shared" / "seeds")
    found = sorted(folder.glob(f"{seed}_*.txt"))
    return found[0].read_text("utf-8") if found else None


def read_statements(document: str) -> list[DocumentStatement]:
    """The statements of a document's code, in their order."""
    return [
        statement
        for block in _BLOCK.finditer(document)
        for statement in _of_block(block[2], block[3], document.count("\n", 0, block.start()) + 1)
    ]


def _of_block(language: str, code: str, line: int) -> Iterator[DocumentStatement]:
    if language == "sql":
        yield from _of_script(code, line)
    elif language in ("typescript", "ts"):
        for match in _TEMPLATE.finditer(code):
            yield from _of_script(match[1], line)


def _of_script(script: str, line: int) -> Iterator[DocumentStatement]:
    for text in split_script(script):
        if cron := _CRON.fullmatch(text):
            for body in split_script(cron[3]):
                yield DocumentStatement(body, line, cron[1])
        else:
            yield DocumentStatement(text, line)


def split_script(script: str) -> list[str]:
    """The statements of a script, without comments outside of texts."""
    parts, text, end = [], "", 0
    for token in _TOKEN.finditer(script):
        text += script[end : token.start()]
        end = token.end()
        if token[0] == ";":
            parts.append(text)
            text = ""
        elif not token[0].startswith("--"):
            text += token[0]
    parts.append(text + script[end:])
    return [part.strip() for part in parts if part.strip()]


@dataclass(slots=True)
class Reading:
    """A document that is gone through from the beginning to the end."""

    seed: str
    statements: Sequence[DocumentStatement]
    done: list[DocumentStatement] = field(default_factory=list)
    ran: int = 0

    def find(self, *words: str) -> DocumentStatement:
        """The first statement that has all these words and was not done yet."""
        for statement in self.statements:
            if statement not in self.done and all(word in statement.text for word in words):
                return statement
        raise AssertionError(f"no statement of seed {self.seed} is left that has {words}")

    async def run(
        self, db: Any, statement: DocumentStatement, *args: Any, **replaced: str
    ) -> list[Any]:
        """Run it with the parameters given; `replaced` are those written `:name`, `${name}` or
        `<name>`."""
        text = statement.text
        for name, value in replaced.items():
            for spelling in (f":{name}", "${" + name + "}", f"<{name}>"):
                text = text.replace(spelling, value)
        rows: list[Any] = await db.fetch(text, *args)
        self.done.append(statement)
        self.ran += 1
        return rows

    async def make_original(self, db: Any, schema: str = "printed") -> None:
        """Run what the document defines in a schema of its own: the original, to compare with."""
        definitions = [one for one in self.statements if one.is_definition]
        await db.execute(
            f"create schema if not exists {schema}; set search_path = {schema}, public"
        )
        for statement in definitions:
            await db.execute(statement.text)
        await db.execute("reset search_path")
        self.done += definitions

    def left(self) -> list[str]:
        return [str(one) for one in self.statements if one not in self.done]


async def columns_of(db: Any, schema: str, table: str) -> list[tuple[str, str, str | None]]:
    """The columns of a table or view: name, type, default."""
    rows = await db.fetch(
        "select column_name, case data_type when 'USER-DEFINED' then udt_name else data_type end, "
        "column_default from information_schema.columns "
        "where table_schema = $1 and table_name = $2 order by ordinal_position",
        *(schema, table),
    )
    return [(row[0], row[1], row[2]) for row in rows]
