"""`windrow`, and `python -m windrow`. Loads nothing before it can be interrupted: Ctrl-C in the
moment of starting is as quiet as later. Garbage is not looked for until a command is loaded
(`cli/lazy.py`): there is none."""

from __future__ import annotations

import gc
import sys
from typing import Final

INTERRUPTED: Final = 130


def main() -> None:
    gc.disable()
    try:
        from windrow.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
