-- The addresses of a tenant's cached pages of a site and its subdomains. `beyond` sorts just after
-- the last of the subdomains.
-- takes site text, beyond text, tenant text, limit int
-- gives url text
SELECT DISTINCT url {binary} AS url
  FROM windrow.page
 WHERE site >= :site AND site < :beyond AND tenant {is} :tenant
 ORDER BY 1
 LIMIT :limit
