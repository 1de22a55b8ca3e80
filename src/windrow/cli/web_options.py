"""What can be asked of each page on the command line: the same for a page, a crawl and a batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from windrow.cli.output import given_options, parse_duration, parse_json

MILLISECONDS = 1000

PageOptions = dict[str, Any]  # under the names of the API

FormatsOption = Annotated[
    list[str] | None,
    typer.Option("--format", "-f", help="markdown (the default), html, links …; one or more."),
]
HeadersOption = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME:VALUE", help="To be sent.")
]
IncludeTagsOption = Annotated[
    list[str] | None, typer.Option("--include-tag", metavar="SELECTOR", help="Only these parts.")
]
ExcludeTagsOption = Annotated[
    list[str] | None, typer.Option("--exclude-tag", metavar="SELECTOR", help="Not these parts.")
]
MainContentOption = Annotated[
    bool, typer.Option("--only-main-content/--whole-page", help="Without menus and the like?")
]
TimeoutOption = Annotated[str | None, typer.Option(help="For each page, like 30s.")]
MaxAgeOption = Annotated[
    str | None, typer.Option(help="A copy of a page that is no older, like 2h, will do.")
]
MobileOption = Annotated[bool, typer.Option("--mobile", help="Ask as a phone does.")]
IndexOption = Annotated[bool, typer.Option("--index/--no-index", help="Make pages searchable.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=JSON", help="Any other scrape option, as the API has it."),
]


def takes_page_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options in the place of its parameter `page`, which gets what was asked
    for."""
    shared = inspect.signature(page_options, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters
    given: list[inspect.Parameter] = []
    for parameter in own.values():
        given += shared.values() if parameter.name == "page" else [parameter]

    @wraps(command)
    def run(**values: Any) -> None:
        page = page_options(**{name: values.pop(name) for name in shared})
        command(page=page, **values)

    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in given]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in ordered}
    return run


def page_options(
    formats: FormatsOption = None,
    headers: HeadersOption = None,
    include_tags: IncludeTagsOption = None,
    exclude_tags: ExcludeTagsOption = None,
    only_main_content: MainContentOption = True,
    timeout: TimeoutOption = None,
    max_age: MaxAgeOption = None,
    mobile: MobileOption = False,
    index: IndexOption = True,
    more: SetOption = None,
) -> PageOptions:
    """What was asked of each page."""
    asked = given_options(
        formats=formats,
        headers=as_headers(headers),
        includeTags=include_tags,
        excludeTags=exclude_tags,
        onlyMainContent=None if only_main_content else False,
        timeout=milliseconds(timeout),
        maxAge=milliseconds(max_age),
        mobile=mobile or None,
        index=None if index else False,
    )
    return asked | _more(more)


def as_headers(lines: list[str] | None) -> dict[str, str] | None:
    return dict(map(_header, lines)) if lines else None


def milliseconds(duration: str | None) -> int | None:
    return None if duration is None else round(parse_duration(duration) * MILLISECONDS)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"{text!r} is no header: write NAME:VALUE")
    return name.strip(), value.strip()


def _more(given: list[str] | None) -> dict[str, Any]:
    options = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is no option: write NAME=JSON")
        options[name] = parse_json(value)
    return options
