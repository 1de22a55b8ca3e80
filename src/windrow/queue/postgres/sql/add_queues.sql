-- Settings of queues, unless there are some. :rows, a JSON array of the columns.
INSERT INTO windrow.queue (
    name, is_paused, max_depth, on_full, completed_seconds, failed_seconds, cancelled_seconds)
SELECT name, is_paused, max_depth, on_full, completed_seconds, failed_seconds, cancelled_seconds
  FROM json_to_recordset(:rows::text::json) AS given (
       name text, is_paused boolean, max_depth integer, on_full text, completed_seconds bigint,
       failed_seconds bigint, cancelled_seconds bigint)
 ORDER BY name
    ON CONFLICT (name) DO NOTHING
