"""Self-contained HTML pages: markup, tables, line plots, pictures and one style sheet. Pages make no request.

Only the explorer's page has a script.
"""
