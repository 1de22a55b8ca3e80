"""What was ingested: sources, documents, contents, cached pages, calls and their artifacts.

The catalog knows no jobs. A job's transaction joins them: what is written with `tx=job.tx` is
written if and only if the job is completed.
"""

from __future__ import annotations

from windrow.catalog.catalog import Catalog

__all__ = ["Catalog"]
