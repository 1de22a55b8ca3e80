"""Videos: a row of `clipnest_videos` is scraped, then enriched, and then it is found.

`chain.py` has the stages; `looking.py` gets what is said in a video, by a provider or on this
machine; `keeping.py` writes what came of it, to the row and to the index.
"""

from __future__ import annotations
