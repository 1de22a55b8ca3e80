-- How long the jobs of a queue are kept that finish from now on. Null: the default; -1: for ever.
-- :name; :completed, :failed, :cancelled seconds, each taken if its :has_… is true.
INSERT INTO windrow.queue AS queue (
    name, is_paused, completed_seconds, failed_seconds, cancelled_seconds)
VALUES (:name::text, false, :completed::bigint, :failed::bigint, :cancelled::bigint)
    ON CONFLICT (name) DO UPDATE
   SET completed_seconds = CASE WHEN :has_completed::boolean THEN excluded.completed_seconds
                                ELSE queue.completed_seconds END,
       failed_seconds = CASE WHEN :has_failed::boolean THEN excluded.failed_seconds
                             ELSE queue.failed_seconds END,
       cancelled_seconds = CASE WHEN :has_cancelled::boolean THEN excluded.cancelled_seconds
                                ELSE queue.cancelled_seconds END
