"""The paper's tables and ours: data sets, benchmark runs, and the report page.

Only the command line and `hashlearn.datasets` import this folder.
"""
