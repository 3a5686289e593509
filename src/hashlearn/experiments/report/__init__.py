"""Stored results as something to look at: self-contained pages, no network, no scripts."""
