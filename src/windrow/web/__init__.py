"""The dashboard: pages for people, rendered here, on what the HTTP API stands on too.

A page works without scripts; `static/live.js` asks for it again when something happens and puts in
the parts that changed. Nothing is loaded from elsewhere.
"""
