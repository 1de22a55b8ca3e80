-- The folder that holds the embedded index of this database. Returns holder, if one was recorded.
SELECT holder FROM windrow_leader WHERE role = 'index folder'
