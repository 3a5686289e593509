"""Self-contained HTML pages: templates, the data of plots, galleries and tables, one style sheet. They request nothing.

Only the explorer's page has a script.
"""
