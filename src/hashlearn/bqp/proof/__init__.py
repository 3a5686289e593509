"""Proven optimality for small problems: branch and bound on semidefinite relaxations, and the proofs' checker.

`check` imports nothing of the package, and modules below the solvers use its exact integers. So nothing is imported
here.
"""
