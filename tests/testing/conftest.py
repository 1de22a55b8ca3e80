from __future__ import annotations

import pytest

from windrow import Queue
from windrow.queue.store import Store


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)
