-- Keys of a group that goes, so many at a time.
-- :group_id :limit
DELETE FROM windrow_group_key
WHERE group_id = :group_id
  AND key IN (SELECT key FROM windrow_group_key WHERE group_id = :group_id ORDER BY key LIMIT :limit)
