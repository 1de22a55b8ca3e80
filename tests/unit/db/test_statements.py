from __future__ import annotations

from windrow.db.statements import parse_statement

SOURCE = """
-- Claims jobs. :not_a_parameter in a comment.
SELECT id, run_at::text, '12:30' AS half_past
FROM windrow.job_live
WHERE queue = :queue AND priority > :floor AND (kind = :kind OR :queue IS NULL) -- why
LIMIT :most
"""


def test_parameters_are_numbered_in_order_of_first_use() -> None:
    statement = parse_statement("claim_jobs", SOURCE)
    assert statement.parameters == ("queue", "floor", "kind", "most")
    assert "queue = $1 AND priority > $2 AND (kind = $3 OR $1 IS NULL)" in statement.numbered
    assert statement.bind({"most": 4, "kind": 3, "floor": 2, "queue": 1}) == [1, 2, 3, 4]


def test_casts_and_times_are_not_parameters_and_comments_are_not_sent() -> None:
    statement = parse_statement("claim_jobs", SOURCE)
    assert "run_at::text, '12:30'" in statement.numbered
    assert "--" not in statement.text
    assert "not_a_parameter" not in statement.text
