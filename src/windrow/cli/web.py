"""`windrow scrape`, `crawl`, `map` and `batch`: pages of the web, from the command line.

What fetches and converts is imported by the commands, not here: `windrow --help` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from windrow.cli.output import (
    FAILED,
    MISUSED,
    DatabaseOption,
    JsonOption,
    give_up,
    given_options,
    load,
    parse_duration,
    parse_json,
    plain,
    print_json,
    run,
)

if TYPE_CHECKING:
    from windrow.queue.job import Job
    from windrow.services.web_runs import Begin, CrawlRun
    from windrow.settings import Settings

T = TypeVar("T")

INTERRUPTED = 130  # as of a process that Ctrl-C has ended
MOST_ERRORS = 10  # that are told one by one
MILLISECONDS = 1000

OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write pages there, a file each.")
]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, help="Pages at once here, if no other worker runs.")
]
ResumeOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Go on with one that was left.")
]
RetryOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Only the pages of it that failed, once more.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show how far it is.")]
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
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=JSON", help="Any other scrape option, as the API has it."),
]


def scrape(
    urls: Annotated[list[str], typer.Argument(metavar="URL…")],
    out: OutOption = None,
    formats: FormatsOption = None,
    headers: HeadersOption = None,
    include_tags: IncludeTagsOption = None,
    exclude_tags: ExcludeTagsOption = None,
    only_main_content: MainContentOption = True,
    timeout: TimeoutOption = None,
    max_age: MaxAgeOption = None,
    mobile: MobileOption = False,
    more: SetOption = None,
    concurrency: ConcurrencyOption = 10,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Scrape pages: print them as markdown, or write them to a folder."""
    options = scrape_options(
        formats, headers, include_tags, exclude_tags, only_main_content, timeout, max_age, mobile
    )
    settings = load(database)
    from windrow.services.web_runs import run_scrapes

    jobs = _run(
        run_scrapes(settings, urls, options | _more(more), out=out, concurrency=concurrency)
    )
    if as_json:
        print_json([_page_fields(job, with_document=out is None) for job in jobs])
    elif out is None:
        for job in jobs:
            if job.result is not None:
                print(_readable(job))
    failed = [(job.payload["url"], job.error or str(job.state)) for job in jobs if not job.result]
    _tell_failed(failed)
    raise typer.Exit(FAILED if failed else 0)


def crawl(
    url: Annotated[str | None, typer.Argument(metavar="URL", help="Where to begin.")] = None,
    resume: ResumeOption = None,
    retry_failed: RetryOption = None,
    out: OutOption = None,
    limit: Annotated[
        int | None, typer.Option(help="The most pages. [default: 10000]", show_default=False)
    ] = None,
    include_paths: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Only such paths; one or more.")
    ] = None,
    exclude_paths: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="No such paths; one or more.")
    ] = None,
    regex_on_full_url: Annotated[
        bool, typer.Option("--regex-on-full-url", help="These are for the whole URL.")
    ] = False,
    max_discovery_depth: Annotated[
        int | None, typer.Option(help="The most hops from the start.")
    ] = None,
    crawl_entire_domain: Annotated[
        bool, typer.Option("--crawl-entire-domain", help="Not only what lies under the start.")
    ] = False,
    allow_subdomains: Annotated[
        bool, typer.Option("--allow-subdomains", help="Subdomains too.")
    ] = False,
    allow_external_links: Annotated[
        bool, typer.Option("--allow-external-links", help="One hop out of the site.")
    ] = False,
    sitemap: Annotated[
        str | None, typer.Option(help="include (the default), skip or only the sitemap's pages.")
    ] = None,
    llms_txt: Annotated[
        bool, typer.Option("--llms-txt/--no-llms-txt", help="Look for llms.txt too?")
    ] = True,
    ignore_query_parameters: Annotated[
        bool, typer.Option("--ignore-query-parameters", help="/a?b=1 is /a.")
    ] = False,
    deduplicate_similar_urls: Annotated[
        bool,
        typer.Option(
            "--deduplicate-similar-urls/--keep-similar-urls",
            help="www., index.html … are the same?",
        ),
    ] = True,
    ignore_robots_txt: Annotated[
        bool, typer.Option("--ignore-robots-txt", help="Yours alone to answer for.")
    ] = False,
    robots_user_agent: Annotated[
        str | None, typer.Option(help="By which name robots.txt is read.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="Between pages, one at a time, like 2s.")
    ] = None,
    max_concurrency: Annotated[
        int | None, typer.Option(help="The most pages of it at once, whoever works.")
    ] = None,
    formats: FormatsOption = None,
    headers: HeadersOption = None,
    include_tags: IncludeTagsOption = None,
    exclude_tags: ExcludeTagsOption = None,
    only_main_content: MainContentOption = True,
    timeout: TimeoutOption = None,
    max_age: MaxAgeOption = None,
    mobile: MobileOption = False,
    more: SetOption = None,
    concurrency: ConcurrencyOption = 10,
    quiet: QuietOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Crawl a site. Ctrl-C leaves it as it is; `--resume ID` goes on."""
    crawl_options = given_options(
        limit=limit,
        includePaths=include_paths,
        excludePaths=exclude_paths,
        regexOnFullURL=regex_on_full_url or None,
        maxDiscoveryDepth=max_discovery_depth,
        crawlEntireDomain=crawl_entire_domain or None,
        allowSubdomains=allow_subdomains or None,
        allowExternalLinks=allow_external_links or None,
        sitemap=sitemap,
        llmsTxt=None if llms_txt else False,
        ignoreQueryParameters=ignore_query_parameters or None,
        deduplicateSimilarURLs=None if deduplicate_similar_urls else False,
        ignoreRobotsTxt=ignore_robots_txt or None,
        robotsUserAgent=robots_user_agent,
        delay=None if delay is None else parse_duration(delay),
        maxConcurrency=max_concurrency,
    )
    options = scrape_options(
        formats, headers, include_tags, exclude_tags, only_main_content, timeout, max_age, mobile
    ) | _more(more)
    settings = load(database)
    from windrow.services.web_runs import new_crawl

    begin = _former(resume, retry_failed, is_new=url is not None)
    if begin is None:
        begin = new_crawl(url or "", crawl_options, options)
    _see_through(
        settings, begin, "crawl", out=out, concurrency=concurrency, quiet=quiet, as_json=as_json
    )


def batch(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL…", help="`-`: one a line, from stdin.")
    ] = None,
    resume: ResumeOption = None,
    retry_failed: RetryOption = None,
    out: OutOption = None,
    max_concurrency: Annotated[
        int | None, typer.Option(help="The most pages of it at once, whoever works.")
    ] = None,
    ignore_invalid: Annotated[
        bool, typer.Option("--ignore-invalid", help="Pass over what is no URL.")
    ] = False,
    formats: FormatsOption = None,
    headers: HeadersOption = None,
    include_tags: IncludeTagsOption = None,
    exclude_tags: ExcludeTagsOption = None,
    only_main_content: MainContentOption = True,
    timeout: TimeoutOption = None,
    max_age: MaxAgeOption = None,
    mobile: MobileOption = False,
    more: SetOption = None,
    concurrency: ConcurrencyOption = 10,
    quiet: QuietOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Scrape many pages as one: counted, left and gone on with like a crawl."""
    options = scrape_options(
        formats, headers, include_tags, exclude_tags, only_main_content, timeout, max_age, mobile
    ) | _more(more)
    settings = load(database)
    from windrow.services.web_runs import new_batch

    begin = _former(resume, retry_failed, is_new=bool(urls))
    if begin is None:
        begin = new_batch(
            _listed(urls or []),
            options,
            max_concurrency=max_concurrency,
            ignore_invalid=ignore_invalid,
        )
    _see_through(
        settings, begin, "batch", out=out, concurrency=concurrency, quiet=quiet, as_json=as_json
    )


def map_(
    url: Annotated[str, typer.Argument(metavar="URL")],
    search: Annotated[str | None, typer.Option(help="Those about it first.")] = None,
    sitemap: Annotated[
        str | None, typer.Option(help="include (the default), skip or only the sitemap's.")
    ] = None,
    include_subdomains: Annotated[
        bool, typer.Option("--include-subdomains/--no-subdomains", help="Subdomains too?")
    ] = True,
    ignore_query_parameters: Annotated[
        bool,
        typer.Option("--ignore-query-parameters/--keep-query-parameters", help="/a?b=1 is /a?"),
    ] = True,
    filter_by_path: Annotated[
        bool, typer.Option("--filter-by-path/--entire-site", help="Only what lies under the URL?")
    ] = True,
    limit: Annotated[int | None, typer.Option(help="The most. [default: 5000]")] = None,
    headers: HeadersOption = None,
    location: Annotated[
        list[str] | None, typer.Option("--language", help="To be preferred, like de-DE.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="For all of it, like 60s.")] = None,
    concurrency: ConcurrencyOption = 10,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the addresses of a site, one a line."""
    options = given_options(
        search=search,
        sitemap=sitemap,
        includeSubdomains=None if include_subdomains else False,
        ignoreQueryParameters=None if ignore_query_parameters else False,
        filterByPath=None if filter_by_path else False,
        limit=limit,
        headers=dict(map(_header, headers)) if headers else None,
        location={"languages": location} if location else None,
        timeout=_milliseconds(timeout),
    )
    settings = load(database)
    from windrow.services.web_runs import run_map

    job = _run(run_map(settings, url, options, concurrency=concurrency))
    if job.result is None:
        raise give_up(f"{url}: {job.error or job.state}")
    if as_json:
        print_json(job.result)
    else:
        for link in job.result["links"]:
            print(plain(link))


def scrape_options(
    formats: list[str] | None,
    headers: list[str] | None,
    include_tags: list[str] | None,
    exclude_tags: list[str] | None,
    only_main_content: bool,
    timeout: str | None,
    max_age: str | None,
    mobile: bool,
) -> dict[str, Any]:
    """What was asked of each page, under the names of the API."""
    return given_options(
        formats=formats,
        headers=dict(map(_header, headers)) if headers else None,
        includeTags=include_tags,
        excludeTags=exclude_tags,
        onlyMainContent=None if only_main_content else False,
        timeout=_milliseconds(timeout),
        maxAge=_milliseconds(max_age),
        mobile=mobile or None,
    )


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


def _milliseconds(duration: str | None) -> int | None:
    return None if duration is None else round(parse_duration(duration) * MILLISECONDS)


def _listed(urls: Sequence[str]) -> list[str]:
    if list(urls) != ["-"]:
        return list(urls)
    return [line.strip() for line in sys.stdin if line.strip()]


def _former(resume: str | None, retry_failed: str | None, *, is_new: bool) -> Begin | None:
    """The one that was named, or None: a new one is asked for."""
    if sum((is_new, resume is not None, retry_failed is not None)) != 1:
        raise give_up("give a URL, or --resume ID, or --retry-failed ID", MISUSED)
    from windrow.services.web_runs import former_crawl

    if retry_failed is not None:
        return former_crawl(retry_failed, retries_failed=True)
    return None if resume is None else former_crawl(resume)


def _see_through(
    settings: Settings,
    begin: Begin,
    command: Literal["crawl", "batch"],
    *,
    out: Path | None,
    concurrency: int,
    quiet: bool,
    as_json: bool,
) -> None:
    from windrow.cli.web_progress import ProgressLine
    from windrow.services.web_runs import run_crawl

    with ProgressLine(is_shown=not quiet and sys.stderr.isatty()) as progress:
        done = _run(
            run_crawl(
                settings,
                begin,
                progress.show,
                out=out,
                with_documents=as_json and out is None,
                concurrency=concurrency,
            )
        )
    if as_json:
        print_json(_run_fields(done))
    else:
        _print_run(done, out)
    _tell_failed([(error.url, error.error) for error in done.errors.errors])
    if done.is_interrupted:
        print(f"Left as it is. Go on: windrow {command} --resume {done.crawl.id}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(_exit_code(done))


def _exit_code(done: CrawlRun) -> int:
    """Pages that cannot be had are part of the web; a crawl without a page is a failure."""
    crawl = done.crawl
    if crawl.status != "completed":
        print(f"error: it is {crawl.status}: {plain(crawl.error or 'no reason')}", file=sys.stderr)
        return FAILED
    return 0 if crawl.completed or not crawl.failed else FAILED


def _print_run(done: CrawlRun, out: Path | None) -> None:
    crawl = done.crawl
    print(f"{crawl.id}  {crawl.status}  {crawl.completed} pages, {crawl.failed} failed")
    if out is not None:
        print(f"{done.saved} written to {out}")


def _run_fields(done: CrawlRun) -> dict[str, Any]:
    crawl = done.crawl
    return {
        "id": crawl.id,
        "url": crawl.url,
        "status": crawl.status,
        "total": crawl.total,
        "completed": crawl.completed,
        "failed": crawl.failed,
        "created_at": crawl.created_at,
        "ended_at": crawl.ended_at,
        "is_interrupted": done.is_interrupted,
        "saved": done.saved,
        "data": [document.to_wire() for document in done.documents],
        "errors": done.errors.errors,
        "robots_blocked": done.errors.robots_blocked,
    }


def _page_fields(job: Job, *, with_document: bool) -> dict[str, Any]:
    fields = {"id": job.id, "url": job.payload["url"], "state": job.state, "error": job.error}
    return fields | ({"document": job.result} if with_document else {})


def _readable(job: Job) -> str:
    """A page as people read it; control characters of its author do nothing here."""
    text = job.result.get("markdown")
    if text is None:
        import msgspec

        return msgspec.json.format(msgspec.json.encode(job.result), indent=2).decode()
    return plain(text.replace("\t", "    "))


def _tell_failed(failed: Sequence[tuple[str, str]]) -> None:
    for url, error in failed[:MOST_ERRORS]:
        print(f"failed: {plain(url)}: {plain(error)}", file=sys.stderr)
    if len(failed) > MOST_ERRORS:
        print(f"… and {len(failed) - MOST_ERRORS} more", file=sys.stderr)


def _run(work: Coroutine[Any, Any, T]) -> T:
    from windrow.services.attending import Interrupted

    try:
        return run(work)
    except Interrupted:
        raise give_up("interrupted", INTERRUPTED) from None
