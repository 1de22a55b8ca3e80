-- The sources that documents are about to be put into: none of them is removed before the end of the
-- transaction, or the documents see that it is. Before anything else is locked. :rows, JSON.
SELECT source.id
  FROM windrow.source
  JOIN (SELECT DISTINCT tenant, source
          FROM json_to_recordset(:rows::text::json) AS given(tenant text, source text)) AS given
    ON source.tenant = given.tenant AND source.id = given.source
 ORDER BY source.tenant, source.id
   FOR KEY SHARE OF source
