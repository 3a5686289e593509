"""The solvers, one file each, and their parts. The semidefinite relaxation has a folder of its own, `bqp.sdr`.

``tabu`` with ``tournament``, and ``pool``, belong to ``local_search`` · ``dual_start`` to ``augmented_lagrangian`` ·
``couplings`` to ``graph_cut``.
"""
