-- Videos to be looked into, on SQLite: see video.sql. A row that says nothing of its status says pending
-- then; rows that were there before are left alone.

CREATE TABLE IF NOT EXISTS clipnest_videos (
  id INTEGER PRIMARY KEY,
  video_url TEXT NOT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS processing_status TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS processing_error TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS title TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS summary TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS topics TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS transcript TEXT;
ALTER TABLE clipnest_videos ADD COLUMN IF NOT EXISTS metadata TEXT;
CREATE INDEX IF NOT EXISTS clipnest_videos_status ON clipnest_videos (processing_status);

-- The id of the job that is being inserted, in 16 bytes, as events have it.
CREATE TABLE IF NOT EXISTS windrow_video_job (packed BLOB NOT NULL);

DROP TRIGGER IF EXISTS windrow_video_insert;
DROP TRIGGER IF EXISTS windrow_video_again;
CREATE TRIGGER windrow_video_insert AFTER INSERT ON clipnest_videos
WHEN ifnull(NEW.processing_status, 'pending') = 'pending'
BEGIN
  UPDATE clipnest_videos SET processing_status = 'pending' WHERE id = NEW.id;
END;
CREATE TRIGGER windrow_video_again AFTER UPDATE OF processing_status ON clipnest_videos
WHEN NEW.processing_status = 'pending' AND NOT EXISTS (
  SELECT 1 FROM windrow_job_live WHERE unique_key = 'video:' || NEW.id
)
BEGIN
  DELETE FROM windrow_video_job;
  INSERT INTO windrow_video_job (packed) VALUES (randomblob(16));
  INSERT INTO windrow_job_live (
    id, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes, unique_key
  )
  SELECT
    substr(digits, 1, 8) || '-' || substr(digits, 9, 4) || '-' || substr(digits, 13, 4) || '-'
    || substr(digits, 17, 4) || '-' || substr(digits, 21),
    'scrape_jobs', 'video.scrape', 'ready', 5, now, now, 3, 4, 'video:' || NEW.id
  FROM (
    SELECT
      lower(hex(packed)) AS digits,
      CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now
    FROM windrow_video_job
  );
  UPDATE windrow_job_live SET place = seq WHERE unique_key = 'video:' || NEW.id AND place IS NULL;
  INSERT INTO windrow_job_payload (seq, payload)
  SELECT seq, json_object('id', NEW.id, 'video_url', NEW.video_url)
  FROM windrow_job_live WHERE unique_key = 'video:' || NEW.id;
  INSERT INTO windrow_tally (queue, state, count) VALUES ('scrape_jobs', 'ready', 1)
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_event (at, type, state, queue, kind, job_ids)
  SELECT j.created_at, 'job.created', j.state, j.queue, j.kind, v.packed
  FROM windrow_video_job AS v CROSS JOIN windrow_job_live AS j
  WHERE j.unique_key = 'video:' || NEW.id;
END;
