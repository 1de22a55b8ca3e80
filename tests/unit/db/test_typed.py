"""Typed statements: one text, rendered for two dialects, with conversions both ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from windrow.db.typed import Dialect, TypedStatement, _build
from windrow.ids import new_id

ID = "01890000-0000-7000-8000-000000000001"


def build(source: str, dialect: Dialect, folder: Path = Path()) -> TypedStatement:
    return _build("a_statement", source, folder, dialect)


def test_parameters_are_cast_on_postgres_and_bound_by_position_on_sqlite() -> None:
    source = (
        "-- takes ids uuid[], before time\n"
        "SELECT 1 FROM windrow.job WHERE id {in ids} AND at < :before"
    )

    postgres, sqlite = build(source, "postgres").statement, build(source, "sqlite").statement

    assert postgres.numbered == (
        "SELECT 1 FROM windrow.job WHERE id = ANY ($1::uuid[]) AND at < $2::timestamptz"
    )
    assert sqlite.numbered == (
        "SELECT 1 FROM windrow_job WHERE id IN (SELECT value FROM json_each(?1)) AND at < ?2"
    )
    assert postgres.parameters == sqlite.parameters == ("ids", "before")


def test_rows_are_one_json_array_of_which_missing_fields_are_left_out() -> None:
    source = (
        "-- takes given (id uuid, tenant tenant, at time,\n--   tags json)\n"
        "INSERT INTO windrow.one SELECT id FROM {rows given}"
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
    rows = [{"id": ID, "tenant": None, "at": moment, "tags": ["a"]}, {"id": ID, "tags": None}]

    postgres, sqlite = build(source, "postgres"), build(source, "sqlite")

    columns = "id uuid, tenant text, at timestamptz, tags json"
    assert f"json_to_recordset($1::text::json) AS given ({columns})" in postgres.statement.numbered
    assert "value ->> 'at' AS at, value -> 'tags' AS tags FROM json_each(?1)) AS given" in (
        sqlite.statement.numbered
    )
    assert postgres.encode({"given": rows})["given"] == (
        f'[{{"id":"{ID}","tenant":"","at":"2026-01-02T03:04:05.000678+02:00","tags":["a"]}},'
        f'{{"id":"{ID}","tenant":""}}]'
    )
    assert '"at":1767315845000678' in sqlite.encode({"given": rows})["given"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_ids_that_are_none_are_left_out_and_others_found_in_any_spelling(dialect: Dialect) -> None:
    found = build("-- takes ids uuid[], id uuid\nSELECT :id WHERE 1 {in ids}", dialect)

    values = found.encode({"ids": [ID.upper(), "17", "x' OR 1=1", ""], "id": "17"})

    assert values == {"ids": [ID] if dialect == "postgres" else f'["{ID}"]', "id": None}


def test_columns_come_back_as_values_of_their_types() -> None:
    source = (
        "-- gives id uuid, tenant tenant, at time, is_open bool, tags text[], more json\nSELECT 1"
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    micros = 1767323045000678

    [row] = build(source, "sqlite").decode([(ID, "", micros, 1, '["a","b"]', '{"c":1}')])

    assert row == {
        "id": ID,
        "tenant": None,
        "at": moment,
        "is_open": True,
        "tags": ("a", "b"),
        "more": {"c": 1},
    }
    assert build(source, "sqlite").decode([(ID, "acme", None, 0, None, None)])[0]["at"] is None


def test_a_row_with_another_number_of_columns_than_the_header_is_an_error() -> None:
    with pytest.raises(ValueError, match="argument"):
        build("-- gives id uuid, size int\nSELECT id", "sqlite").decode([(ID,)])


def test_tuples_are_arrays_on_postgres_and_one_run_each_on_sqlite() -> None:
    source = (
        "-- each tenant tenant, size int\n-- takes most int\n"
        "SELECT :size + :most WHERE :tenant = ''"
    )
    tuples = [(None, 1), ("acme", 2)]

    postgres, sqlite = build(source, "postgres"), build(source, "sqlite")

    assert postgres.encode_each(tuples) == [{"tenant": ["", "acme"], "size": [1, 2]}]
    assert sqlite.encode_each(tuples) == [{"tenant": "", "size": 1}, {"tenant": "acme", "size": 2}]
    assert "unnest($1::text[], $2::bigint[]) WITH ORDINALITY" in postgres.statement.numbered
    assert "ORDER BY item.place" in postgres.statement.numbered


def test_an_unknown_word_or_type_is_an_error_at_once() -> None:
    with pytest.raises(KeyError):
        build("-- takes id uuid\nSELECT {whenever}", "sqlite")
    with pytest.raises(KeyError):
        build("-- takes id uid\nSELECT :id", "postgres")


def test_a_name_in_a_file_of_columns_stands_for_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "thing.columns").write_text("id uuid,\nname text\n")
    found = build(
        "-- gives thing\nSELECT {columns thing} FROM windrow.thing AS thing", "sqlite", tmp_path
    )

    assert found.statement.numbered == "SELECT thing.id, thing.name FROM windrow_thing AS thing"
    [row] = found.decode([(new_id(), "n")])
    assert list(row) == ["id", "name"]
