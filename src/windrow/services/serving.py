"""Serving HTTP, with workers beside it, until told to stop.

The first signal lets requests and running jobs end, the second does not wait for them. Nothing is
lost either way: what did not end is a row in the database.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from windrow.errors import ConfigError
from windrow.extras import find_missing
from windrow.logging import event
from windrow.queue.queue import Queue
from windrow.services.attending import helping
from windrow.services.handler_modules import OWN_EXTRAS, installed_handlers
from windrow.services.index_folder import find_elsewhere
from windrow.services.jobs import open_queue
from windrow.services.keys import KeyRing
from windrow.services.working import (
    COMMAND_HANDLERS,
    Child,
    log_not_indexed,
    open_own_handlers,
    supervised_environment,
)
from windrow.settings import Settings
from windrow.worker.metrics import Metrics, watch_queue
from windrow.worker.worker import Worker

if TYPE_CHECKING:
    import uvicorn

logger = logging.getLogger(__name__)

MakeApp = Callable[[Queue, Settings], Any]

GRACE_SECONDS: Final = 10.0  # for requests that are being answered, and for running jobs


async def serve(
    settings: Settings,
    make_app: MakeApp,
    *,
    host: str = "127.0.0.1",
    port: int = 3002,
    workers: int | None = 1,
    concurrency: int = 10,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the application that `make_app` makes; with one worker in this process, or so many in
    processes of their own, or none, or (None) one here while no other works. `ready` is told the
    address once it answers."""
    raise_open_files()
    async with open_queue(settings, migrate=None) as queue:
        await check_host(queue, settings, host)
        with _listening(host, port) as listener:
            app = make_app(queue, settings)
            server = _make_server(app, lambda: ready(_address(listener)))
            working = _working(settings, queue, workers, concurrency, lambda: _stop_server(server))
            async with working as stop_workers:

                def stop() -> None:
                    if not server.should_exit:
                        logger.warning(
                            "stopping: open requests have %g s to end",
                            GRACE_SECONDS,
                            extra=event("server.stopping", grace_seconds=GRACE_SECONDS),
                        )
                    app.state.is_stopping = True  # those who wait for something wait no longer
                    for close in app.state.stopping:
                        close()
                    _stop_server(server)
                    stop_workers()

                with _signals(stop), watch_queue(queue):
                    await server.serve(sockets=[listener])
                for close in app.state.closing:
                    await close()


def raise_open_files() -> None:
    """Each listener of events is an open file, and most systems give a process 1,024 of them, but
    let it take more. With none left not even the database could be opened."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ValueError, OSError) as error:  # macOS says "unlimited" and refuses it
        logger.info(
            "no more than %d files can be open at once: %s",
            soft,
            error,
            extra=event("server.files_limited", limit=soft),
        )


async def check_host(queue: Queue, settings: Settings, host: str) -> None:
    """Without a key only this machine is served. Raises ConfigError."""
    if host == "localhost" or await KeyRing(queue, settings).read():
        return
    try:
        if ipaddress.ip_address(host).is_loopback:
            return
    except ValueError:
        pass  # a name, of whatever addresses
    raise ConfigError(
        f"no API key is configured, so only this machine is served, not {host}: "
        "set WINDROW_API_KEYS, run `windrow keys create`, or serve on 127.0.0.1"
    )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Bound before anything else: a port that is taken is said at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            yield listener
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot serve on {host}:{port}: {error}") from error


def _make_server(app: Any, ready: Callable[[], None]) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        def capture_signals(self) -> Any:
            return nullcontext()  # signals are for the workers too: see `_signals`

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    # What it tells is told of this server: few know what it is made with.
    logging.getLogger("uvicorn.error").addFilter(_name_ours)
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(GRACE_SECONDS),
    )
    return Server(config)


def _name_ours(record: logging.LogRecord) -> bool:
    record.name = logger.name
    return True


def _stop_server(server: uvicorn.Server) -> None:
    server.force_exit = server.should_exit
    server.should_exit = True


@asynccontextmanager
async def _working(
    settings: Settings,
    queue: Queue,
    workers: int | None,
    concurrency: int,
    died: Callable[[], None],
) -> AsyncIterator[Callable[[], None]]:
    """Workers, as long as this lasts; what stops them. `died` is called if the one in this process
    ends with an error, which is raised at the end."""
    extras = sorted({*OWN_EXTRAS.values()})
    if workers and all(find_missing(extra) for extra in extras):
        logger.warning(
            "no worker runs here, there are no handlers: pip install 'windrow[%s]'",
            ",".join(extras),
            extra=event("worker.handlers_missing", handlers=list(OWN_EXTRAS), extras=extras),
        )
        workers = 0
    if workers is None:
        async with helping(settings, queue, COMMAND_HANDLERS, concurrency, died) as helper:
            yield helper.stop_by_signal
    elif workers == 1:
        async with _one_here(settings, queue, concurrency, died) as stop:
            yield stop
    else:
        async with _processes(settings, queue, workers, concurrency) as stop:
            yield stop


@asynccontextmanager
async def _one_here(
    settings: Settings, queue: Queue, concurrency: int, died: Callable[[], None]
) -> AsyncIterator[Callable[[], None]]:
    stopping = asyncio.Event()
    running: list[Worker] = []

    async def work() -> None:
        async with AsyncExitStack() as stack:
            own = open_own_handlers(settings, queue, installed_handlers())
            handlers = await stack.enter_async_context(own)
            worker = Worker(
                queue,
                handlers,
                concurrency=concurrency,
                grace=GRACE_SECONDS,
                observers=[Metrics()],
            )
            running.append(worker)
            if not stopping.is_set():
                await worker.run()

    def stop() -> None:
        stopping.set()
        for worker in running:
            worker.stop_by_signal()

    def report(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "the worker in this process died: %s",
                error,
                exc_info=error,
                extra=event("worker.died", error=str(error)),
            )
            died()

    task = asyncio.create_task(work(), name="windrow worker")
    task.add_done_callback(report)
    try:
        yield stop
    finally:
        if not stopping.is_set():
            stop()
        await task


@asynccontextmanager
async def _processes(
    settings: Settings, queue: Queue, count: int, concurrency: int
) -> AsyncIterator[Callable[[], None]]:
    elsewhere = await find_elsewhere(settings, queue.store)
    if elsewhere is not None:
        log_not_indexed(elsewhere)
    arguments = [
        *(name for name in installed_handlers() if elsewhere is None or name != "index"),
        "--concurrency",
        str(concurrency),
        "--grace",
        f"{GRACE_SECONDS:g}s",
    ]
    children = [
        Child(arguments, supervised_environment(settings, number)) for number in range(count)
    ]
    tasks = [asyncio.create_task(child.keep_running()) for child in children]

    def stop() -> None:
        for child in children:
            child.tell(signal.SIGTERM)

    try:
        yield stop
    finally:
        if not all(child.is_stopping for child in children):
            stop()
        await asyncio.gather(*tasks)


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
