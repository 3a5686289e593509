"""Runs experiments and stores the raw results. `hashlearn.experiments.report` shows them."""
