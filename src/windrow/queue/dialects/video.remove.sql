-- Takes the triggers of clipnest_videos away. The table stays with what is in it, and so do its jobs.
DROP TRIGGER IF EXISTS windrow_video_insert ON public.clipnest_videos;
DROP TRIGGER IF EXISTS windrow_video_again ON public.clipnest_videos;
DROP FUNCTION IF EXISTS windrow_dialect.enqueue_video();
