"""`windrow`, and `python -m windrow`. Loads nothing before it can be interrupted: Ctrl-C in the
moment of starting is as quiet as later."""

from __future__ import annotations

import sys
from typing import Final

INTERRUPTED: Final = 130


def main() -> None:
    try:
        from windrow.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
