-- Settings of a queue, unless there are some.
-- :name :is_paused :max_depth :on_full :completed_seconds :failed_seconds :cancelled_seconds
INSERT INTO windrow_queue (
  name, is_paused, max_depth, on_full, completed_seconds, failed_seconds, cancelled_seconds
)
VALUES (
  :name, :is_paused, :max_depth, :on_full, :completed_seconds, :failed_seconds, :cancelled_seconds
)
ON CONFLICT (name) DO NOTHING
