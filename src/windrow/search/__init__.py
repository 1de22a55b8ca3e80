"""From a question to what was found: ranked, without what is not shown, with snippets."""
