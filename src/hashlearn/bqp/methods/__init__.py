"""Solvers of one binary quadratic problem, one file each; the semidefinite relaxation has its own folder, `bqp.sdr`."""
