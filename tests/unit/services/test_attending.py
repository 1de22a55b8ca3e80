"""Who attends to jobs can tell whether others do, for each of Windrow's own handlers."""

from __future__ import annotations

from windrow.services.attending import TAKEN
from windrow.services.handler_modules import OWN_HANDLERS


def test_every_own_handler_names_jobs_by_which_its_workers_are_recognised() -> None:
    assert set(TAKEN) == set(OWN_HANDLERS)
