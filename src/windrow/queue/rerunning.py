"""A script that is run again, by a process which it started itself.

Python lets a process that is to call a function of a script run the script first. What stands there
outside `if __name__ == "__main__":` is done once more: its jobs would be enqueued again, and a
worker begin inside the process of a handler.
"""

from __future__ import annotations

import sys

from windrow.errors import ConfigError


def refuse_rerun() -> None:
    """Raise ConfigError if a script is just being run for its functions only."""
    process = sys.modules.get("multiprocessing.process")  # not to be imported for this
    if process is not None and getattr(process.current_process(), "_inheriting", False):
        raise ConfigError(
            "this script is being run again, by the process of a handler with run='process', which "
            'looks for its functions: put what else it does under `if __name__ == "__main__":`, '
            "or the handlers into a module"
        )
