"""Experiments: run them, keep the raw results. What is shown of them is made in `hashlearn.experiments.report`."""
