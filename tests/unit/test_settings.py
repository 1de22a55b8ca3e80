from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import ConfigError
from windrow.settings import load_settings


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    assert load_settings(environment={"HOME": "x"}, folder=tmp_path).database_url == (
        "sqlite:///windrow.db"
    )
    (tmp_path / "windrow.toml").write_text(
        'database_url = "sqlite:///file.db"\nmax_payload_bytes = 10\nmax_result_bytes = 20\n'
    )
    environment = {"WINDROW_MAX_PAYLOAD_BYTES": "11", "WINDROW_DATABASE_URL": "sqlite:///env.db"}
    flags = {"database_url": "sqlite:///flag.db", "max_payload_bytes": None}
    settings = load_settings(flags, environment=environment, folder=tmp_path)
    assert settings.database_url == "sqlite:///flag.db"
    assert settings.max_payload_bytes == 11
    assert settings.max_result_bytes == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("database = 1", "unknown setting in windrow.toml: database; there are: database_url"),
        ('max_payload_bytes = "many"', "max_payload_bytes in windrow.toml must be int"),
        ("database_url", "is not valid TOML"),
        ('allow_private_networks = "perhaps"', "must be true or false, not 'perhaps'"),
    ],
)
def test_a_bad_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "windrow.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_settings(environment={"HOME": "x"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("said", "meant"), [("1", True), ("Yes", True), ("0", False), ("false", False), ("", False)]
)
def test_a_switch_is_off_when_it_says_so(tmp_path: Path, said: str, meant: bool) -> None:
    environment = {"WINDROW_ALLOW_PRIVATE_NETWORKS": said, "HOME": "x"}
    settings = load_settings(environment=environment, folder=tmp_path)
    assert settings.allow_private_networks is meant
    (tmp_path / "windrow.toml").write_text("allow_private_networks = true")
    assert load_settings(environment={"HOME": "x"}, folder=tmp_path).allow_private_networks
