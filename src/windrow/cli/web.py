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
    INTERRUPTED,
    MISUSED,
    DatabaseOption,
    JsonOption,
    give_up,
    given_options,
    hint_at,
    load,
    parse_duration,
    plain,
    print_json,
    run,
)
from windrow.cli.web_options import (
    HeadersOption,
    PageOptions,
    as_headers,
    milliseconds,
    takes_page_options,
)

if TYPE_CHECKING:
    from windrow.queue.job import Job
    from windrow.services.web_runs import Begin, CrawlRun
    from windrow.settings import Settings

T = TypeVar("T")

MOST_ERRORS = 10  # that are told one by one

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


@takes_page_options
def scrape(
    urls: Annotated[list[str], typer.Argument(metavar="URL…", help="The pages.")],
    out: OutOption = None,
    *,
    page: PageOptions,
    concurrency: ConcurrencyOption = 10,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Scrape pages: print them as markdown, or write them to a folder.

    A page that answers with an HTTP error is neither printed nor written, only
    named on stderr, and the exit code is 1; --json shows what it answered.
    """
    settings = load(database)
    from windrow.services.web import error_of
    from windrow.services.web_runs import run_scrapes

    jobs = _run(run_scrapes(settings, urls, page, out=out, concurrency=concurrency))
    errors = {job.id: error for job in jobs if (error := error_of(job)) is not None}
    if as_json:
        print_json([_page_fields(job, errors.get(job.id), out is None) for job in jobs])
    elif out is None:
        for job in jobs:
            if job.id not in errors:
                print(_readable(job))
    _tell_warnings(jobs)
    failed = [(job.payload["url"], errors[job.id]) for job in jobs if job.id in errors]
    _tell_failed(failed)
    raise typer.Exit(FAILED if failed else 0)


@takes_page_options
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
    *,
    page: PageOptions,
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
    settings = load(database)
    from windrow.services.web_runs import new_crawl

    begin = _former(resume, retry_failed, is_new=url is not None)
    if begin is None:
        begin = new_crawl(url or "", crawl_options, page)
    _see_through(
        settings,
        begin,
        "crawl",
        page,
        out=out,
        concurrency=concurrency,
        quiet=quiet,
        as_json=as_json,
    )


@takes_page_options
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
    *,
    page: PageOptions,
    concurrency: ConcurrencyOption = 10,
    quiet: QuietOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Scrape many pages as one: counted, left and gone on with like a crawl."""
    settings = load(database)
    from windrow.services.web_runs import new_batch

    begin = _former(resume, retry_failed, is_new=bool(urls))
    if begin is None:
        begin = new_batch(
            _listed(urls or []),
            page,
            max_concurrency=max_concurrency,
            ignore_invalid=ignore_invalid,
        )
    _see_through(
        settings,
        begin,
        "batch",
        page,
        out=out,
        concurrency=concurrency,
        quiet=quiet,
        as_json=as_json,
    )


def map_(
    url: Annotated[str, typer.Argument(metavar="URL", help="The site.")],
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
    use_index: Annotated[
        bool, typer.Option("--use-index/--no-index", help="What is known from before, too?")
    ] = True,
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
        headers=as_headers(headers),
        location={"languages": location} if location else None,
        useIndex=None if use_index else False,
        timeout=milliseconds(timeout),
    )
    settings = load(database)
    from windrow.services.web_runs import run_map

    job = _run(run_map(settings, url, options, concurrency=concurrency))
    if job.result is None:
        why = f"{url}: {job.error or job.state}"
        raise give_up(why, hint=hint_at(why))
    if as_json:
        print_json(job.result)
    else:
        for link in job.result["links"]:
            print(plain(link))


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
    page: PageOptions,
    *,
    out: Path | None,
    concurrency: int,
    quiet: bool,
    as_json: bool,
) -> None:
    from windrow.cli.web_progress import ProgressLine
    from windrow.services.web import robots_warning
    from windrow.services.web_runs import run_crawl

    with ProgressLine(is_shown=not quiet and sys.stderr.isatty()) as progress:
        done = _run(
            run_crawl(
                settings,
                begin,
                progress.show,
                out=out,
                with_documents=as_json and out is None,
                scrape_options=page,
                concurrency=concurrency,
            )
        )
    if as_json:
        print_json(_run_fields(done))
    else:
        _print_run(done, out)
    if warning := robots_warning(done.crawl, done.errors.robots_blocked):
        print(f"warning: {plain(warning)}", file=sys.stderr)
    _tell_failed([(error.url, error.error) for error in done.errors.errors])
    if done.is_interrupted:
        print(f"Left as it is. Go on: windrow {command} --resume {done.crawl.id}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(_exit_code(done, command))


def _exit_code(done: CrawlRun, command: str) -> int:
    """Pages that cannot be had are part of the web; a crawl without a page is a failure."""
    crawl = done.crawl
    if crawl.status != "completed":
        why = crawl.error or "no reason was given"
        ended = "was cancelled" if crawl.status == "cancelled" else crawl.status
        give_up(f"the {command} {ended}: {plain(why)}", hint=hint_at(why))
        return FAILED
    return 0 if done.pages else FAILED


def _print_run(done: CrawlRun, out: Path | None) -> None:
    crawl = done.crawl
    print(f"{crawl.id}  {crawl.status}  {done.pages} pages, {done.failed} failed")
    if out is not None:
        print(f"{done.saved} written to {out}")


def _run_fields(done: CrawlRun) -> dict[str, Any]:
    crawl = done.crawl
    return {
        "id": crawl.id,
        "url": crawl.url,
        "status": crawl.status,
        "total": done.pages + done.failed + crawl.pending,
        "completed": done.pages,
        "failed": done.failed,
        "created_at": crawl.created_at,
        "ended_at": crawl.ended_at,
        "is_interrupted": done.is_interrupted,
        "saved": done.saved,
        "data": [document.to_wire() for document in done.documents],
        "errors": done.errors.errors,
        "robots_blocked": done.errors.robots_blocked,
    }


def _page_fields(job: Job, error: str | None, with_document: bool) -> dict[str, Any]:
    fields = {"id": job.id, "url": job.payload["url"], "state": job.state, "error": error}
    return fields | ({"document": job.result} if with_document else {})


def _readable(job: Job) -> str:
    """A page as people read it; control characters of its author do nothing here."""
    text = job.result.get("markdown")
    if text is None:
        import msgspec

        return msgspec.json.format(msgspec.json.encode(job.result), indent=2).decode()
    return plain(text.replace("\t", "    "))


def _tell_warnings(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.result is not None and (warning := job.result.get("warning")):
            print(f"warning: {plain(job.payload['url'])}: {plain(warning)}", file=sys.stderr)


def _tell_failed(failed: Sequence[tuple[str, str]]) -> None:
    for url, error in failed[:MOST_ERRORS]:
        print(f"failed: {plain(url)}: {plain(error)}", file=sys.stderr)
    if len(failed) > MOST_ERRORS:
        print(f"… and {len(failed) - MOST_ERRORS} more", file=sys.stderr)
    if hint := next(filter(None, (hint_at(error) for _, error in failed)), ""):
        print(f"hint: {hint}", file=sys.stderr)


def _run(work: Coroutine[Any, Any, T]) -> T:
    from windrow.services.attending import Interrupted

    try:
        return run(work)
    except Interrupted:
        raise give_up("interrupted", INTERRUPTED) from None
