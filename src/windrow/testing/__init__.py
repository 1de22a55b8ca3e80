"""For the tests of applications: `drain`, `assert_enqueued`, a clock that obeys.

The fixtures are in `windrow.testing.plugin`; nothing here needs pytest.
"""

from __future__ import annotations

from windrow.clock import FakeClock
from windrow.testing.jobs import assert_enqueued, assert_not_enqueued, drain

__all__ = ["FakeClock", "assert_enqueued", "assert_not_enqueued", "drain"]
