"""What all homes of an index share."""

from __future__ import annotations

import uuid

import numpy as np

from windrow.index.home import Labels, Point, floats, hit_of, lean_payload_of, point_id


def test_the_id_of_a_point_is_the_uuid_of_its_content_and_place() -> None:
    for ordinal in range(20):
        content = uuid.uuid4()
        assert point_id(str(content), ordinal) == str(uuid.uuid5(content, str(ordinal)))


def test_what_a_lean_payload_leaves_out_is_read_as_empty() -> None:
    point = Point(str(uuid.uuid4()), 0, (), "text", Labels("docs", "source", "a.md"), end=4)

    payload = lean_payload_of(point)

    assert payload.keys().isdisjoint({"branches", "tags", "headings", "date"})
    hit = hit_of(point.id, 0.5, {}, payload)
    assert (hit.labels, hit.headings, hit.start, hit.end) == (point.labels, (), 0, 4)


def test_lists_of_one_are_texts_in_a_lean_payload_and_lists_again_in_a_hit() -> None:
    labels = Labels("docs", "source", "a.md", branches=("",), tags=("x", "y"))
    point = Point(str(uuid.uuid4()), 0, (), "text", labels, headings=("Top",), end=4)

    payload = lean_payload_of(point)

    assert (payload["branches"], payload["headings"], payload["tags"]) == ("", "Top", ["x", "y"])
    hit = hit_of(point.id, 0.5, {}, payload)
    assert (hit.labels, hit.headings) == (labels, ("Top",))


def test_vectors_of_any_kind_become_lists_of_floats() -> None:
    assert floats((0.5, 1.0)) == [0.5, 1.0]
    [first, _] = floats(np.array([0.5, 1.0], np.float32))  # type: ignore[arg-type]
    assert type(first) is float
