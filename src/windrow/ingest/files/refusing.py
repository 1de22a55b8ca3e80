"""What an error of the system says of a file: it may not be read, or it cannot be just now.

What is not known to be of the file itself passes: a full table of open files or a disk that does
not answer must not hide a file for good.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from windrow.errors import FileRefused, FileUnavailable, IngestError

OF_THE_FILE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV}
)


def cannot_read(path: str | Path, error: OSError) -> IngestError:
    why = error.strerror or str(error)
    if error.errno in OF_THE_FILE:
        return FileRefused(os.fspath(path), why)
    return FileUnavailable(os.fspath(path), why)
