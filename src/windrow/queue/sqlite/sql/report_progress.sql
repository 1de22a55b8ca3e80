-- Progress never goes back; counters are merged over the former ones.
-- :seq :percent or null :message or null :counters (json object) :now
-- Returns percent, message, counters as they are then.
INSERT INTO windrow_job_progress (seq, percent, message, counters, updated_at)
VALUES (:seq, ifnull(:percent, 0), :message, :counters, :now)
ON CONFLICT (seq) DO UPDATE SET
  percent = max(percent, ifnull(:percent, 0)),
  message = coalesce(:message, message),
  counters = json_patch(counters, :counters),
  updated_at = :now
RETURNING percent, message, counters
