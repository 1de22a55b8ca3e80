-- The states of jobs. :ids. Returns id, state.
SELECT id, state FROM windrow.job WHERE id = ANY (:ids::uuid[])
