"""The app: `manage.py migrate` brings the queue's tables up to date along with the others."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.signals import setting_changed
from django.db.models.signals import post_migrate

from windrow.integrations.django.queue import close_queue, database_alias, queue_url
from windrow.queue.queue import Queue


class WindrowConfig(AppConfig):
    name = "windrow.integrations.django"
    label = "windrow"
    verbose_name = "Windrow"

    def ready(self) -> None:
        post_migrate.connect(migrate_queue, sender=self)
        setting_changed.connect(forget_queue)


def migrate_queue(using: str, verbosity: int = 1, **_: Any) -> None:
    if using != database_alias():
        return
    with Queue.sync(queue_url(), migrate=True):
        if verbosity:
            print("  Windrow: the tables of the queue are up to date")


def forget_queue(setting: str, **_: Any) -> None:
    """Tests change settings as they go."""
    if setting in ("WINDROW", "DATABASES"):
        close_queue()
