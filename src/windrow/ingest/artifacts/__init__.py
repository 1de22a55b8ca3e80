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

FOLDER: Final = "artifacts"
S3: Final = "s3://"


def open_artifacts(settings: Settings) -> Artifacts:
    """The bucket of the settings, else a folder. Raises MissingExtra and ConfigError."""
    url = settings.artifacts_url
    if not url:
        return FolderArtifacts(data_folder(settings) / FOLDER)
    if not url.startswith(S3):
        raise ConfigError("artifacts_url must begin with s3://, or be empty for a folder")
    from windrow.ingest.artifacts.bucket import BucketArtifacts

    return BucketArtifacts.from_settings(settings)
