"""Pages as a browser shows them: `Browser.render`, on a Chromium of the system.

The extra `browser` has what is needed to talk to it. Nothing of that is imported before a page asks
for it, and plain pages never do.
"""
