-- Record what happened to jobs alike, or to a group. :at :type :state :queue :kind :tenant :group_id
-- :job_ids (16 bytes for each) :details (json)
INSERT INTO windrow_event (at, type, state, queue, kind, tenant, group_id, job_ids, details)
VALUES (:at, :type, :state, :queue, :kind, :tenant, :group_id, :job_ids, :details)
