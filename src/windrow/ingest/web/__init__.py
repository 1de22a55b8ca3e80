"""Which pages belong to a crawl: URLs, scope, robots.txt, sitemaps, llms.txt."""
