-- The members of a group in the order in which they ended, as crawls are read; and kept pages by their
-- site: the names of the host from the last to the first, with a dot after each (`org.example.`), so
-- that a site and its subdomains are one range.
CREATE INDEX job_finished_ended ON windrow.job_finished (group_id, finished_at, id)
    WHERE group_id IS NOT NULL;

ALTER TABLE windrow.page ADD COLUMN site text COLLATE "C";
CREATE INDEX page_by_site ON windrow.page (site, tenant, url) WHERE site IS NOT NULL;
