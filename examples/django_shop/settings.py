"""A small project. The queue is in Django's own database, so they share transactions.

SHOP_DATABASE_URL chooses that: sqlite:///path (the default is shop.sqlite3 beside this file) or
postgresql://user:password@host:port/name.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).parent


def database(url: str) -> dict[str, Any]:
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": path,
            # Take the write lock at the beginning of a transaction: one that reads first and is
            # overtaken by another writer could not write any more.
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
            "TEST": {"NAME": f"{path}.test"},  # a queue needs a file, in tests too
        }
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }


DATABASES = {
    "default": database(os.environ.get("SHOP_DATABASE_URL", f"sqlite:///{HERE / 'shop.sqlite3'}"))
}
INSTALLED_APPS = ["windrow.integrations.django", "shop"]
ROOT_URLCONF = "shop.urls"
SECRET_KEY = "only for the example"  # noqa: S105
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
