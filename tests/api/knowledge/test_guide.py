"""The commands of docs/guides/knowledge-api.md run as they are printed (A2)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.server import Server
from tests.test_docs import ROOT, fenced
from tests.web.site import Site

GUIDE = ROOT / "docs" / "guides" / "knowledge-api.md"


def test_a2_knowledge_is_taken_in_and_found_with_curl(
    server: Server, site: Site, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("THE GUIDE IS NOT TESTED: there is no curl here")
    site.page("/", ["/rake"], title="Farm", text="This site is about a farm.")
    site.page("/rake", title="Rake", text="The rake stands in the barn.")
    (tmp_path / ".curlrc").write_text('header = "Authorization: Bearer k-guide"\n')
    # Waits of a second are right for people.
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.05\n")
    (tmp_path / "sleep").chmod(0o755)
    environment = {
        **os.environ,
        "WINDROW_URL": server.url,
        "SITE_URL": f"{site.url}/",
        "CURL_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    [example] = fenced(GUIDE, "sh")

    done = subprocess.run(
        ["sh", "-euc", example],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    # Two crawls and the files, as they were followed; the crawls again as sessions, one by itself.
    assert done.stdout.count('"status":"completed"') == 6
    assert "gathers hay into windrows" in done.stdout
    assert '"section_title":"Farm"' in done.stdout
    assert '"documents":2' in done.stdout, "what was removed"
