-- The addresses of kept pages of a site and its subdomains, those of one tenant.
-- :site, and :beyond, which is just behind the last of its subdomains; :tenant or null; :limit
SELECT DISTINCT url COLLATE "C" AS url
  FROM windrow.page
 WHERE site >= :site::text AND site < :beyond::text
   AND tenant IS NOT DISTINCT FROM :tenant::text
 ORDER BY 1
 LIMIT :limit::integer
