"""`manage.py windrow_worker`: run the project's jobs until told to stop."""

from __future__ import annotations

import asyncio
import logging
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from windrow.errors import WindrowError
from windrow.integrations.django.handlers import project_handlers
from windrow.integrations.django.queue import queue_options, queue_url
from windrow.logging import configure_logging
from windrow.queue.queue import Queue
from windrow.settings import load_settings
from windrow.worker.worker import DEFAULT_CONCURRENCY, DEFAULT_GRACE, Worker


class Command(BaseCommand):
    help = "Run the jobs of this project: the handlers in the `jobs` modules of its apps."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queues", default="", help="take jobs of these queues only, with commas between"
        )
        parser.add_argument(
            "--concurrency",
            type=int,
            default=DEFAULT_CONCURRENCY,
            help="how many jobs may run at once (default: %(default)s)",
        )
        parser.add_argument(
            "--grace",
            type=float,
            default=DEFAULT_GRACE,
            help="seconds running jobs may take when it is told to stop (default: %(default)s)",
        )
        parser.add_argument(
            "--until-idle",
            action="store_true",
            help="end when no job is ready or running; waits up to a minute for retries",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            _log(options["verbosity"])
            asyncio.run(self._work(options))
        except WindrowError as error:
            raise CommandError(str(error)) from error

    async def _work(self, options: dict[str, Any]) -> None:
        handlers = project_handlers()
        queues = [name.strip() for name in options["queues"].split(",") if name.strip()]
        async with Queue.open(queue_url(), **queue_options()) as queue:
            worker = Worker(
                queue,
                handlers,
                queues=queues or None,
                concurrency=options["concurrency"],
                grace=options["grace"],
            )
            if options["verbosity"]:
                kinds = ", ".join(sorted(one.kind for one in handlers))
                self.stdout.write(f"worker {worker.name} takes {kinds}")
            await worker.run(until_idle=options["until_idle"], handle_signals=True)


def _log(verbosity: int) -> None:
    """Log as `windrow worker` does, where the project's LOGGING says nothing of Windrow."""
    if not logging.getLogger("windrow").hasHandlers():
        settings = load_settings()
        usual = {0: "warning", 1: "info"}.get(verbosity, "debug")
        configure_logging(settings.log_format, settings.log_level or usual)
