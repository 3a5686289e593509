"""The solvers, one file each. The semidefinite relaxation has a folder of its own, `bqp.sdr`.

``tabu`` holds the walks of ``local_search``, ``annealing`` and ``clusters`` its work on sparse problems.
"""
