-- Everything due now was removed. :now or null.
WITH former AS (
    DELETE FROM windrow.pruning
)
INSERT INTO windrow.pruning (done_at) VALUES (coalesce(:now::timestamptz, statement_timestamp()))
