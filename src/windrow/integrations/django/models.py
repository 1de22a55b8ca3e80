"""There are none. Django tells an app that migrations have run only if it has this module."""

from __future__ import annotations
