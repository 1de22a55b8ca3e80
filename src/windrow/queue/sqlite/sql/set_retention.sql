-- How long the jobs of a queue are kept that finish from now on. Null: the default; -1: for ever.
-- :name; :completed :failed :cancelled seconds, each taken if its :has_… is true.
INSERT INTO windrow_queue (name, is_paused, completed_seconds, failed_seconds, cancelled_seconds)
VALUES (:name, 0, :completed, :failed, :cancelled)
ON CONFLICT (name) DO UPDATE SET
  completed_seconds = CASE WHEN :has_completed THEN :completed ELSE completed_seconds END,
  failed_seconds = CASE WHEN :has_failed THEN :failed ELSE failed_seconds END,
  cancelled_seconds = CASE WHEN :has_cancelled THEN :cancelled ELSE cancelled_seconds END
