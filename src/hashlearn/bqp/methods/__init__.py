"""The solvers, one file each. The semidefinite relaxation has a folder of its own, `bqp.sdr`.

``tabu`` and ``annealing`` hold the engines of ``local_search``.
"""
