"""Figures in the pages: each comes from a stored result in docs/results, and a test compares them.

A page holds the rendered figure between two HTML comments, so that it reads well anywhere::

    It takes <!-- result ranking_speed.fit_mlp -->57<!-- end --> s.

    <!-- table ranking_sizes -->
    | bytes | ... |
    <!-- end -->

``result NAME.KEY`` is an entry of "values" in ``docs/results/NAME.json``. ``result NAME[8][MLP encoder]`` is a cell
of its table: the first cells of the row, then the column. ``#2`` behind it takes the second number of the cell. A
format as in Python may follow: ``result NAME.rows ,``. A mark must not begin a line of text, since Markdown takes it
for a block there.

``python -m benchmarks.claims``          lists every figure with its command, commit, date and machine
``python -m benchmarks.claims --write``  writes the figures of the stored results into the pages
``python -m benchmarks.claims --check``  ends with 1 if a page and a stored result differ

A benchmark with ``--json FILE`` writes such a stored result (`recording`). Results with ``"transcribed": true`` were
copied from the pages as they were before; their commit and date are those of the line, not of the measurement.
"""
