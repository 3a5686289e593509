"""Self-contained HTML pages: markup, tables, line plots, pictures and one style sheet. No script, no request."""
