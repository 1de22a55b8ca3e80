-- Takes the triggers of clipnest_videos away. The table stays with what is in it, and so do its jobs.
DROP TRIGGER IF EXISTS windrow_video_insert;
DROP TRIGGER IF EXISTS windrow_video_again;
DROP TABLE IF EXISTS windrow_video_job;
