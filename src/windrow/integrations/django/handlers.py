"""The handlers of a project: those in the `jobs` modules of its apps.

Django opens a database connection for each thread and closes stale ones around a request. A worker
has no requests, so it is done around each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import close_old_connections
from django.utils.module_loading import module_has_submodule

from windrow.integrations.django.queue import configured
from windrow.worker.registry import Handler, by_kind


def project_handlers() -> list[Handler]:
    """All of them, ready for a worker, or for `drain` in a test."""
    named = [f"{app.name}.jobs" for app in apps.get_app_configs() if _has_jobs(app)]
    modules = [import_module(name) for name in dict.fromkeys([*named, *configured("HANDLERS", ())])]
    return [with_fresh_connections(one) for one in by_kind(modules).values()]


def with_fresh_connections(handler: Handler) -> Handler:
    match handler.run:
        case "thread":
            return replace(handler, function=_in_thread(handler.function))
        case "async":
            return replace(handler, function=_in_loop(handler.function))
        case "process":
            return handler  # a process of its own, with connections of its own


def _has_jobs(app: Any) -> bool:
    return app.module is not None and module_has_submodule(app.module, "jobs")


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        close_old_connections()
        try:
            return function(*args)
        finally:
            close_old_connections()

    return call


def _in_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    # The thread that Django's own async calls use: its connections are the ones to look at.
    close = sync_to_async(close_old_connections, thread_sensitive=True)

    @functools.wraps(function)
    async def call(*args: Any) -> Any:
        await close()
        try:
            return await function(*args)
        finally:
            await close()

    return call
