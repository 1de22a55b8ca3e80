-- Parts of a call that are not kept any more. :call; :names.
DELETE FROM windrow_call_artifact
 WHERE call = :call AND name IN (SELECT value FROM json_each(:names))
