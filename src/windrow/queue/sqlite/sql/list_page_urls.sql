-- The addresses of kept pages of a site and its subdomains, those of one tenant.
-- :site, and :beyond, which is just behind the last of its subdomains; :tenant or null; :limit
SELECT DISTINCT url
FROM windrow_page
WHERE site >= :site AND site < :beyond
  AND tenant IS :tenant
ORDER BY url
LIMIT :limit
