-- The number of the last event of a leaf, if that one is old. {leaf}, locked; :seconds that events are
-- kept; :now or null. Returns seq, or no row.
SELECT seq
  FROM (SELECT seq, at FROM windrow.{leaf} ORDER BY seq DESC LIMIT 1) AS last
 WHERE at < coalesce(:now::timestamptz, statement_timestamp())
            - :seconds::double precision * interval '1 second'
