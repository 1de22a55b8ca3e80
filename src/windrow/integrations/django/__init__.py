"""Windrow in a Django project: add `windrow.integrations.django` to INSTALLED_APPS.

    with transaction.atomic():
        order = Order.objects.create(…)
        enqueue("invoice", {"order": order.pk})

`manage.py migrate` makes the queue's tables, `manage.py windrow_worker` runs the handlers that the
`jobs` modules of the installed apps have.
"""

from __future__ import annotations

from windrow.integrations.django.handlers import project_handlers
from windrow.integrations.django.queue import close_queue, enqueue, enqueue_on_commit, get_queue

__all__ = ["close_queue", "enqueue", "enqueue_on_commit", "get_queue", "project_handlers"]
