"""The whole project at work, without a server: migrate, place orders, run the worker.

python examples/django_shop/demo.py [URL of a database]
"""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryDirectory

import django
from django.core.management import call_command


def main(url: str) -> None:
    os.environ["SHOP_DATABASE_URL"] = url
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    django.setup()
    call_command("migrate", verbosity=0)

    from django.test import Client
    from shop.models import Invoice, Order

    client = Client()
    for customer, cents in [("Ada", 1200), ("Bob", 0), ("Grace", 350)]:
        answer = client.post("/orders/", {"customer": customer, "cents": cents})
        print(f"{customer}: {answer.status_code} {answer.json().get('error', '')}".rstrip())

    call_command("windrow_worker", until_idle=True, verbosity=0)
    print(f"{Order.objects.count()} orders")
    for invoice in Invoice.objects.order_by("order"):
        print(f"invoice: {invoice.text}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/shop.db")
