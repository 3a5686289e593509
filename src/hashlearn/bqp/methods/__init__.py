"""The solvers, one file each. The semidefinite relaxation has a folder of its own, `bqp.sdr`.

``tabu`` with ``tournament`` holds the walks of ``local_search``.
"""
