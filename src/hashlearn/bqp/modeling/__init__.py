"""Max-cut, QUBO and Ising problems in the words of their owners: graphs, dicts, arrays, dimod models.

`max_cut`, `qubo` and `ising` take a problem and return an answer in the same words. Behind them stands one `Problem`,
which files, the command line and `DimodSampler` share.
"""
