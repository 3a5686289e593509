"""Benchmarks of `hashlearn.bqp`.

`instances` says which problems, `ours` and `peers` say which solvers, `task` is one measurement in a process
of its own (`worker` is that process), and `race`, `growth` and `quality` are the three tables, run by `make
bench-bqp`, `make bench-bqp-growth` and `make bench-bqp-quality`.
"""
