-- The folder of the embedded index, if one was recorded. It is kept as a role whose holder never
-- changes by itself.
-- gives holder text
SELECT holder FROM windrow.leader WHERE role = 'index folder'
