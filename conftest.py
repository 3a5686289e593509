"""Modules that import PyTorch at their top are left out of the doctests where it is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/hashlearn/bqp/passes/torch_*.py"]
