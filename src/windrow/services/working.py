"""Running workers: one in this process, or several in processes of their own, looked after."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from windrow.errors import IndexElsewhere, StoreUnavailable, WorkerBroken
from windrow.extras import find_missing
from windrow.logging import event
from windrow.queue.queue import Queue, describe_url
from windrow.services.handler_modules import OWN_HANDLERS, import_handlers, installed_handlers
from windrow.services.jobs import open_queue
from windrow.settings import SIBLING, SUPERVISOR, Settings, data_folder
from windrow.worker import threads
from windrow.worker.observers import Observer
from windrow.worker.registry import Handler
from windrow.worker.service import Trouble
from windrow.worker.worker import RETRY_SECONDS, Worker

logger = logging.getLogger(__name__)

# A worker that dies is started again after this long; sooner deaths make the wait longer.
FIRST_RESTART: Final = 0.5
LONGEST_RESTART: Final = 30.0
LIVED_WELL_SECONDS: Final = 60.0
# Exit code of a worker that grew too large and wants to begin afresh.
RECYCLED: Final = 75
# Exit code of a worker of which a part kept failing: a supervisor starts another one.
BROKEN: Final = 70
ORPHAN_SECONDS: Final = 1.0
STUCK_SECONDS: Final = 1.0  # how long threads of handlers may take to end after the worker
# New objects before Python looks for cycles among the new ones, and how many such looks before one
# among the older (usually 700, 10, 10).
CYCLE_THRESHOLDS: Final = (50_000, 20, 10)
NOT_INDEXED: Final = "nothing is indexed by this process: %s; %s"
# What a command runs that sees its own jobs through: rows that others insert are left to workers.
COMMAND_HANDLERS: Final = tuple(name for name in OWN_HANDLERS if name != "nuq")


async def run_worker(
    settings: Settings,
    modules: Sequence[str],
    *,
    until_idle: bool = False,
    wait_for_retries: float = RETRY_SECONDS,
    metrics_port: int | None = None,
    **options: Any,
) -> int:
    """Work until told to stop; the exit code of the process. Without modules it runs Windrow's own
    kinds of jobs; beside modules these are named like one: `windrow worker web myapp.handlers`."""
    named = modules or installed_handlers()
    handlers: list[ModuleType | Handler] = [*import_handlers(named)]
    queue = await _open_patiently(settings)
    with _metrics(metrics_port, queue) as observers:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(queue.close)
            own = open_own_handlers(settings, queue, named, needs_index=True)
            handlers += await stack.enter_async_context(own)
            look_for_cycles_seldom()
            return await _run_worker(
                queue, handlers, until_idle, wait_for_retries, observers, options
            )


async def leave_stuck_threads(work: Coroutine[Any, Any, int]) -> int:
    """Run a worker, and then end the process without threads of handlers that cannot be stopped.
    Python would wait for these, silently and for as long as they like, although their jobs were
    handed back."""
    earlier = {*threading.enumerate()}
    calls = ThreadPoolExecutor(thread_name_prefix=f"{threads.NAME}-call")  # for asyncio.to_thread
    asyncio.get_running_loop().set_default_executor(calls)
    code = await work
    if code == RECYCLED and SUPERVISOR not in os.environ:
        return code  # the process is replaced, with all its threads
    calls.shutdown(wait=False, cancel_futures=True)
    give_up_at = time.monotonic() + STUCK_SECONDS
    while stuck := _handler_threads(earlier):
        if time.monotonic() > give_up_at:
            logger.warning(
                "the process ends although handlers cannot be stopped, in threads: %d",
                len(stuck),
                extra=event("threads.abandoned", count=len(stuck)),
            )
            logging.shutdown()
            os._exit(code)
        await asyncio.sleep(0.02)
    return code


def _handler_threads(earlier: Collection[threading.Thread]) -> list[threading.Thread]:
    alive = threading.enumerate()
    return [one for one in alive if one.name.startswith(threads.NAME) and one not in earlier]


@asynccontextmanager
async def open_own_handlers(
    settings: Settings,
    queue: Queue,
    names: Sequence[str] = OWN_HANDLERS,
    *,
    needs_index: bool = False,
) -> AsyncIterator[list[Handler]]:
    """The handlers of Windrow's own kinds of jobs, of all or of those named. An index on another
    machine is an error in the log, or with `needs_index` raises IndexElsewhere."""
    async with AsyncExitStack() as stack:
        handlers: list[Handler] = []
        if "web" in names or "nuq" in names:
            found = await stack.enter_async_context(open_web_handlers(settings, queue))
            handlers += [one for one in found if one.kind.partition(".")[0] in _parts_of(names)]
        if "knowledge" in names:
            handlers += open_knowledge_handlers(settings, queue)
        if "video" in names:
            handlers += await stack.enter_async_context(open_video_handlers(settings, queue))
        if "calls" in names:
            handlers += await stack.enter_async_context(open_calls_handlers(settings, queue))
        if "index" in names:
            from windrow.services.owning import open_index_handlers

            try:
                handlers += await stack.enter_async_context(open_index_handlers(settings, queue))
            except IndexElsewhere as error:
                if needs_index:
                    raise
                log_not_indexed(error)
        yield handlers


def open_knowledge_handlers(settings: Settings, queue: Queue) -> list[Handler]:
    """The handlers of files, folders, notes and the like."""
    from windrow.pipelines.knowledge.context import Knowledge
    from windrow.pipelines.knowledge.handlers import knowledge_handlers

    everywhere = data_folder(settings) / "ignore"  # rules for every folder, as in .gitignore
    return knowledge_handlers(Knowledge(queue, [everywhere]))


@asynccontextmanager
async def open_video_handlers(settings: Settings, queue: Queue) -> AsyncIterator[list[Handler]]:
    """The handlers of videos, by the providers that have keys, else on this machine."""
    from windrow.ingest.enrich.llm import Model
    from windrow.ingest.fetch.fetcher import Fetcher
    from windrow.ingest.fetch.guard import Guard
    from windrow.ingest.video.scrapecreators import ScrapeCreators
    from windrow.pipelines.video.chain import video_handlers
    from windrow.pipelines.video.looking import Videos, video_folder

    async with AsyncExitStack() as stack:
        api, model = ScrapeCreators.from_settings(settings), Model.from_settings(settings)
        for one in (api, model):
            if one is not None:
                stack.push_async_callback(one.close)
        fetcher = await stack.enter_async_context(Fetcher(guard=Guard.from_settings(settings)))
        videos = Videos(queue, video_folder(settings), api, model, fetcher)
        stack.push_async_callback(videos.close)
        yield video_handlers(videos)


@asynccontextmanager
async def open_calls_handlers(settings: Settings, queue: Queue) -> AsyncIterator[list[Handler]]:
    """The handlers of recordings, transcribed by whom the settings name."""
    from windrow.ingest.artifacts import open_artifacts
    from windrow.ingest.enrich.llm import Model
    from windrow.ingest.transcribe import find_quotas, open_transcriber
    from windrow.pipelines.calls.context import Calls, keep_quotas
    from windrow.pipelines.calls.stages import calls_chain, calls_sweeper

    async with AsyncExitStack() as stack:
        model = Model.from_settings(settings)
        if model is not None:
            stack.push_async_callback(model.close)
        quotas = find_quotas(settings)
        await keep_quotas(queue, quotas)
        calls = Calls(
            queue,
            lambda: open_artifacts(settings),
            lambda: open_transcriber(settings),
            model=model,
            quotas=quotas,
        )
        stack.push_async_callback(calls.close)
        chain = calls_chain(calls)
        yield [*chain.handlers, calls_sweeper(calls, chain).handler]


def _parts_of(names: Sequence[str]) -> set[str]:
    """The first words of the kinds that the named handlers of pages run."""
    return {*names, *(("webhook",) if "web" in names else ())}


@asynccontextmanager
async def open_web_handlers(settings: Settings, queue: Queue) -> AsyncIterator[list[Handler]]:
    """The handlers of pages and crawls, and of rows of `nuq.queue_scrape`, which may fetch what the
    settings allow."""
    # Not at the top: everything that fetches and converts comes with them.
    from windrow.ingest.enrich.llm import Model
    from windrow.ingest.fetch.fetcher import Fetcher
    from windrow.ingest.fetch.guard import Guard
    from windrow.pipelines.web.credentials import Vault
    from windrow.pipelines.web.handlers import web_handlers
    from windrow.pipelines.webhooks.sending import make_handlers

    async with AsyncExitStack() as stack:
        fetcher = await stack.enter_async_context(Fetcher(guard=Guard.from_settings(settings)))
        model = Model.from_settings(settings)
        if model is not None:
            stack.push_async_callback(model.close)
        handlers = await stack.enter_async_context(
            web_handlers(
                queue,
                fetcher=fetcher,
                vault=Vault(queue, settings),
                chromium=settings.chromium,
                model=model,
                host_concurrency=settings.host_concurrency,
                index_pages=settings.index_pages and not find_missing("knowledge"),
                with_nuq_rows=True,
            )
        )
        yield [*handlers, *make_handlers(queue, fetcher, settings.webhook_secret)]


def look_for_cycles_seldom() -> None:
    """Jobs on their way outlive many of Python's usual looks for cyclic garbage, and each goes over
    them again: a tenth of a busy worker's time. What is imported by now stays anyway."""
    gc.freeze()
    gc.set_threshold(*CYCLE_THRESHOLDS)


async def _run_worker(
    queue: Queue,
    handlers: Sequence[ModuleType | Handler],
    until_idle: bool,
    wait_for_retries: float,
    observers: Sequence[Observer],
    options: Mapping[str, Any],
) -> int:
    is_first = SIBLING not in os.environ
    worker = Worker(queue, handlers, observers=observers, announce=is_first, **options)
    orphaned = asyncio.create_task(_stop_when_orphaned(worker))
    try:
        await worker.run(
            until_idle=until_idle, wait_for_retries=wait_for_retries, handle_signals=True
        )
    except WorkerBroken:
        return BROKEN  # logged by the worker
    finally:
        orphaned.cancel()
    return RECYCLED if worker.was_recycled else 0


async def supervise(
    settings: Settings,
    modules: Sequence[str],
    arguments: Sequence[str],
    count: int,
    metrics_port: int | None = None,
) -> int:
    """Keep so many workers running, each `windrow worker` with these arguments, and with a port for
    metrics of its own, from `metrics_port` on. A signal is handed on to all of them. The exit code:
    the first that is not 0 of those that ended for good.

    The modules are imported and the database is opened here before, so that a mistake is reported
    once and not by every worker."""
    import_handlers(modules or installed_handlers())
    await (await _open_patiently(settings)).close()
    children = [
        Child(
            [*modules, *arguments, *_port_argument(metrics_port, number)],
            supervised_environment(settings, number),
        )
        for number in range(count)
    ]
    logger.info(
        "starting %d worker processes", count, extra=event("supervisor.started", count=count)
    )

    def tell(number: signal.Signals) -> None:
        for child in children:
            child.tell(number)

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, tell, one)
    codes = await asyncio.gather(*(child.keep_running() for child in children))
    return next((code for code in codes if code), 0)


def begin_afresh(settings: Settings, arguments: Sequence[str]) -> None:
    """Replace this process by a new one of the same command."""
    command = [sys.executable, "-m", "windrow", "worker", *arguments]
    os.execve(sys.executable, command, environment(settings))  # noqa: S606 - no shell is wanted


def environment(settings: Settings) -> dict[str, str]:
    """The environment of a worker's process: the database, which everybody could read on a command
    line, and the log as this process has it."""
    return {
        **os.environ,
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_LOG_FORMAT": settings.log_format,
        "WINDROW_LOG_LEVEL": settings.log_level,
    }


def supervised_environment(settings: Settings, number: int) -> dict[str, str]:
    """Of a worker's process that this one looks after. Only the first announces itself."""
    sibling = {SIBLING: str(number)} if number else {}
    return {**environment(settings), SUPERVISOR: str(os.getpid()), **sibling}


def log_not_indexed(error: IndexElsewhere) -> None:
    logger.error(NOT_INDEXED, error, error.hint, extra=event("index.elsewhere", error=str(error)))


def _port_argument(first: int | None, number: int) -> list[str]:
    return [] if first is None else ["--metrics-port", str(first + number)]


@contextmanager
def _metrics(port: int | None, queue: Queue) -> Iterator[list[Observer]]:
    """Serve metrics on a port, if one is given, of this worker and of the queues; the observers
    that count."""
    if port is None:
        yield []
        return
    from windrow.worker.metrics import Metrics, serve_metrics, watch_queue

    with serve_metrics(port) as served, watch_queue(queue):
        logger.info(
            "metrics at http://127.0.0.1:%d/metrics",
            served,
            extra=event("metrics.served", port=served),
        )
        yield [Metrics()]


async def _open_patiently(settings: Settings) -> Queue:
    """A worker may well be started before its database is."""
    trouble = Trouble(f"opening the database {describe_url(settings.database_url)}")
    while True:
        try:
            queue = await open_queue(settings, migrate=None)
        except StoreUnavailable as error:
            await asyncio.sleep(trouble.wait(error))
        else:
            trouble.over()
            return queue


async def _stop_when_orphaned(worker: Worker) -> None:
    """A worker does not outlive the process that looks after it."""
    supervisor = int(os.environ.get(SUPERVISOR, 0))
    while supervisor:
        await asyncio.sleep(ORPHAN_SECONDS)
        if os.getppid() != supervisor:
            logger.warning(
                "the supervisor is gone: this worker stops",
                extra=event("worker.orphaned", worker=worker.name, supervisor=supervisor),
            )
            worker.stop()
            return


@dataclass(slots=True)
class Child:
    """A worker's process. It is started again when it dies, not when it ends as it was asked to."""

    arguments: Sequence[str]
    environment: dict[str, str]
    process: asyncio.subprocess.Process | None = None
    is_stopping: bool = False

    async def keep_running(self) -> int:
        wait = FIRST_RESTART
        while True:
            began = time.monotonic()
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "windrow", "worker", *self.arguments),
                env=self.environment,
                start_new_session=True,  # a Ctrl-C comes once, from here
            )
            code = await self.process.wait()
            if self.is_stopping or code in (0, 1, 2):
                return code
            if code == RECYCLED:
                continue
            if time.monotonic() - began > LIVED_WELL_SECONDS:
                wait = FIRST_RESTART
            logger.error(
                "a worker died (%s); another one starts in %g s",
                _told(code),
                wait,
                extra=event("worker.died", exit_code=code, restart_seconds=wait),
            )
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_RESTART)

    def tell(self, number: int) -> None:
        self.is_stopping = True
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)


def _told(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
