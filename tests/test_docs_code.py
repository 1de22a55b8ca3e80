"""Blocks of code in documents are true: what is not run by a test of its own is read here, and
nothing in it may be a name, a command or a setting that there is not.

A block that cannot be checked has a comment before it: `<!-- not run: why -->`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml
from typer.main import get_command

import windrow
from tests.test_docs import ROOT
from windrow import Job, Lease, Queue, Worker
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS, app
from windrow.settings import FILE, load_settings

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.S
)
# Blocks in languages that nothing here can read, and the tests that run them.
RUN = {
    ("docs/guides/coming-from-crawl-jobs.md", "sql"): "tests/seeds/test_crawl_jobs_guide.py",
    ("docs/guides/coming-from-nuq.md", "sql"): "tests/seeds/test_nuq_guide.py",
    ("docs/guides/coming-from-procrastinate.md", "sql"): "tests/migration/test_guides.py",
    ("docs/guides/coming-from-pgmq.md", "sql"): "tests/seeds/test_pgmq_guide.py",
    (
        "docs/guides/coming-from-processing-jobs.md",
        "sql",
    ): "tests/seeds/test_processing_jobs_guide.py",
    ("docs/guides/coming-from-unified-queue.md", "sql"): "tests/seeds/test_unified_queue_guide.py",
    ("docs/operations/vacuum.md", "sql"): "tests/test_guides.py",
    ("docs/guides/queue-over-http.md", "js"): "tests/api/test_queue_guide.py",
}
# What the names in examples stand for.
STANDS_FOR: dict[str, Any] = {"queue": Queue, "mine": Queue, "job": Job, "lease": Lease}
STANDS_FOR |= {"Queue": Queue, "Worker": Worker}


class Block(NamedTuple):
    page: str
    number: int
    language: str
    text: str
    why: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def all_blocks() -> Iterator[Block]:
    for path in PAGES:
        name = str(path.relative_to(ROOT))
        for number, found in enumerate(BLOCK.finditer(path.read_text("utf-8"))):
            yield Block(name, number, found["language"], found["text"], found["why"])


BLOCKS = list(all_blocks())


def test_every_block_is_read_here_or_run_elsewhere_or_says_why_not() -> None:
    """Those that are run elsewhere are named by the test that runs them."""
    readable = {"python", "sh", "bash", "json", "toml", "yaml"}
    strange = [
        str(block)
        for block in BLOCKS
        if block.language not in readable and not block.why and not runs_elsewhere(block)
    ]
    assert strange == []


def runs_elsewhere(block: Block) -> bool:
    test = RUN.get((block.page, block.language))
    return test is not None and Path(block.page).name in (ROOT / test).read_text("utf-8")


def blocks(language: str) -> list[Block]:
    return [one for one in BLOCKS if one.language == language and not one.why]


def test_programs_name_only_what_there_is() -> None:
    assert [wrong for block in blocks("python") for wrong in wrong_names(block)] == []


def wrong_names(block: Block) -> Iterator[str]:
    """Imports, methods and arguments of Windrow's that a program names and that there are not."""
    tree = parse(block.text)
    stands_for = {name: kind for name, kind in STANDS_FOR.items() if not is_other(name, tree)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield from missing(module, [one.name for one in node.names], block)
            case ast.Import():
                for one in node.names:
                    yield from missing(one.name, [], block)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
                if name in stands_for:
                    yield from unknown(getattr(stands_for[name], attribute, None), node, block)
            case ast.Call(func=ast.Name(id=name)) if name in windrow.__all__:
                yield from unknown(getattr(windrow, name), node, block)


def is_other(name: str, tree: ast.AST) -> bool:
    """Whether a program gives the name to something of somebody else's: `queue = PGMQueue(…)`."""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
        and not re.search(r"Queue\.(open|sync)|queue\.|jobs\.", ast.unparse(node.value))
        for node in ast.walk(tree)
    )


def parse(text: str) -> ast.AST:
    """A program, or a part of one that stands in a function."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.parse("async def part():\n" + "".join(f"    {x}\n" for x in text.splitlines()))


def missing(module: str, names: list[str], block: Block) -> Iterator[str]:
    if f"# {module}.py" in (ROOT / block.page).read_text("utf-8"):
        return  # another block of the same page
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        yield f"{block}: {error}"
        return
    yield from (f"{block}: {module} has no {one}" for one in names if not hasattr(found, one))


def unknown(called: Any, node: ast.Call, block: Block) -> Iterator[str]:
    if called is None:
        yield f"{block}: there is no {ast.unparse(node.func)}"
        return
    parameters = inspect.signature(called).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for keyword in node.keywords:
        if not (keyword.arg is None or keyword.arg in parameters or takes_any):
            yield f"{block}: {ast.unparse(node.func)} takes no {keyword.arg}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("@handler('a', tries=3)\ndef run(job): ...", "handler takes no tries"),
        ("await queue.enqueue('a', when=1)", "queue.enqueue takes no when"),
        ("await queue.push('a')", "there is no queue.push"),
        ("from windrow import Task", "windrow has no Task"),
        ("import windrow.tasks", "No module named 'windrow.tasks'"),
    ],
)
def test_a_program_that_is_wrong_is_found(text: str, wrong: str) -> None:
    [found] = wrong_names(Block("README.md", 0, "python", text, None))
    assert found.endswith(wrong)


def test_json_and_yaml_can_be_read() -> None:
    for block in blocks("json"):
        json.loads(block.text)
    for block in blocks("yaml"):
        assert yaml.safe_load(block.text)


def test_settings_of_examples_are_taken(tmp_path: Path) -> None:
    for block in blocks("toml"):
        (tmp_path / FILE).write_text(block.text, "utf-8")
        load_settings(environment={"NOTHING": "set"}, folder=tmp_path)


def test_commands_of_blocks_are_understood() -> None:
    wrong = [
        said
        for block in [*blocks("sh"), *blocks("bash")]
        for words in commands_in(block.text)
        for said in misunderstood(words, str(block))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("windrow jobs list --stat failed", "No such option: --stat"),
        ("windrow jobs", "is no command"),
        ("windrow job list", "there is no command windrow job"),
        ("windrow crawl https://example.org --limit many", "is not a valid int"),
    ],
)
def test_a_command_that_is_wrong_is_found(line: str, wrong: str) -> None:
    [words] = commands_in(f"echo 1 && A=1 {line} | head  # and a comment")
    assert any(wrong in said for said in misunderstood(words, "here"))


INDENTED = re.compile(r"^    (?:[A-Z_]+=\S+ |[A-Z_]+=\"[^\"]*\" )*(windrow .*)$", re.M)
INLINE = re.compile(r"`(windrow [a-z][^`]*)`")


def test_commands_in_the_text_are_there() -> None:
    wrong: list[str] = []
    for path in PAGES:
        if path.parent.name == "reference":
            continue  # made from the commands themselves
        text = BLOCK.sub("", path.read_text("utf-8"))
        for line in INDENTED.findall(text):
            for words in commands_in(line):
                wrong += misunderstood(words, path.name)
        for line in INLINE.findall(text):
            wrong += strange_options(" ".join(line.split()), path.name)
    assert wrong == []


def commands_in(text: str) -> Iterator[list[str]]:
    """The calls of `windrow` in a script, without what the shell does with them."""
    script = "".join(without_comments(text.replace("\\\n", " ")))
    lexer = shlex.shlex(script, posix=True, punctuation_chars="|&;()<>\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, "\n"]:
        if set(word) <= set("|&;()<>\n"):
            yield from called(words)
            words = []
        else:
            words.append(word)


def without_comments(text: str) -> Iterator[str]:
    """Its letters; an apostrophe in a comment opens no quotation."""
    quote = ""
    is_comment = False
    for before, letter in zip(" " + text, text, strict=False):
        is_comment = letter != "\n" and (
            is_comment or (letter == "#" and not quote and before.isspace())
        )
        if is_comment:
            continue
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        yield letter


def called(words: list[str]) -> Iterator[list[str]]:
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if words[:1] == ["windrow"]:
        yield words[1:]


def misunderstood(words: list[str], where: str) -> Iterator[str]:
    """Parse a call as the command does, and go no further."""
    try:
        name, command, rest = find(words)
        if getattr(command, "commands", None):
            raise LookupError(f"{name} is no command")
        command.make_context(name, rest)
    except typer.Exit:
        return  # --help and the like
    except Exception as error:
        yield f"{where}: windrow {' '.join(words)}: {getattr(error, 'message', error)}"


def strange_options(line: str, where: str) -> Iterator[str]:
    """Of a call in a sentence, which may leave out what it is not about."""
    words = line.split()[1:]
    if "|" in line or words[0] == "…":
        return
    try:
        name, command, rest = find(words)
    except LookupError as error:
        yield f"{where}: {error}"
        return
    known = {option for one in command.params for option in [*one.opts, *one.secondary_opts]}
    for word in rest:
        option = word.split("=")[0].rstrip(",.:;")
        if option.startswith("--") and option not in known | {"--help"}:
            yield f"{where}: {name} takes no {option}"


def find(words: list[str]) -> tuple[str, Any, list[str]]:
    """The command that words call, and what is left for it."""
    command, name, rest = root(), "windrow", words
    while rest and not rest[0].startswith("-") and getattr(command, "commands", None):
        if rest[0] not in command.commands:
            raise LookupError(f"there is no command {name} {rest[0]}")
        is_lazy = name == "windrow" and rest[0] in COMMANDS
        command = loaded(rest[0]) if is_lazy else command.commands[rest[0]]
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, command, rest


@cache
def root() -> Any:
    return get_command(app)


@cache
def loaded(name: str) -> Any:
    return load(name, COMMANDS[name])
