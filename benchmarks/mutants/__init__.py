"""Mutation testing: small, realistic bugs are put into a copy of the code one at a time, and the tests must notice.

    make mutants                                    # all of them
    python -m benchmarks.mutants --only metrics     # those whose area, file or description contains the word

A mutant that no test notices shows a gap in the tests. The table of mutants is in `benchmarks.mutants.table`.
"""
