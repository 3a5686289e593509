"""Stored results as something to look at: self-contained pages, no network, no scripts."""

from __future__ import annotations

from hashlearn.experiments.report.page import results_page

__all__ = ["results_page"]
