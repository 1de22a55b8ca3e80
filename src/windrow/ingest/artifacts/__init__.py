"""Where files are kept that jobs hand to each other: a folder, or a bucket that speaks S3.

Keys are made of what a file belongs to, so whoever makes it a second time finds it there.
"""

from __future__ import annotations

from typing import Final

from windrow.errors import ConfigError
from windrow.ingest.artifacts.folder import FolderArtifacts
from windrow.ingest.artifacts.store import Artifacts
from windrow.settings import Settings, data_folder

__all__ = ["Artifacts", "FolderArtifacts", "open_artifacts"]
