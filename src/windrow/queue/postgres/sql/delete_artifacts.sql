-- Parts of a call that are not kept any more. :call; :names, JSON.
DELETE FROM windrow.call_artifact
 WHERE call = :call::uuid AND name IN (SELECT json_array_elements_text(:names::text::json))
