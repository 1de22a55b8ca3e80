"""`windrow db dialect`."""

from __future__ import annotations

from tests.cli.conftest import Read, Windrow


def test_dialect_is_installed_listed_and_removed(
    windrow: Windrow, read: Read, store_name: str
) -> None:
    if store_name == "sqlite":
        assert windrow("db", "dialect", "install", "processing_jobs").returncode == 2
        return

    def installed() -> dict[str, bool]:
        found = read("db", "dialect", "list")
        return {one["name"]: one["installed_at"] is not None for one in found}

    assert installed()["processing_jobs"] is False
    assert windrow("db", "dialect", "install", "processing_jobs").stdout == (
        "installed processing_jobs\n"
    )
    assert installed()["processing_jobs"] is True
    assert "up to date" in windrow("db", "dialect", "install", "processing_jobs").stdout
    assert "processing_jobs  yes" in windrow("db", "dialect", "list").stdout
    remove = ["db", "dialect", "remove", "processing_jobs"]
    assert windrow(*remove).stdout == "would remove processing_jobs: add --yes\n"
    assert read(*remove) == {"is_done": False, "name": "processing_jobs", "was_there": True}
    assert installed()["processing_jobs"] is True
    assert windrow(*remove, "--yes").stdout == "removed processing_jobs\n"
    assert "nothing to do" in windrow(*remove).stdout
    assert "nothing to do" in windrow(*remove, "--yes").stdout
    assert installed()["processing_jobs"] is False


def test_unknown_dialect_is_named_with_those_there_are(windrow: Windrow) -> None:
    for verb in ("install", "remove"):
        printed = windrow("db", "dialect", verb, "klingon")

        assert printed.returncode == 2
        assert "there is no dialect 'klingon' for this database; there are: " in printed.stderr
