-- All quotas by tenant.
-- gives tenant text, credits int, per text
SELECT tenant, credits, per FROM windrow.quota ORDER BY tenant {binary}
