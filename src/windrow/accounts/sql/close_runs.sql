-- Close runs. Of two transactions that close the same run the second waits, and finds it closed.
-- takes ids uuid[]
-- gives id uuid
UPDATE windrow.usage_run SET is_open = false
 WHERE id {in ids} AND is_open
RETURNING id
