-- Delete runs of earlier periods that are closed, or whose group is gone.
-- takes runs (tenant text, period time)
DELETE FROM windrow.usage_run
 WHERE id IN (SELECT run.id
                FROM {rows runs}
                JOIN windrow.usage_run AS run
                  ON run.tenant = runs.tenant AND run.period < runs.period
               WHERE NOT run.is_open
                     OR NOT EXISTS (SELECT 1 FROM windrow.job_group AS job_group
                                     WHERE job_group.id = run.id)
                 {skip_locked run})
