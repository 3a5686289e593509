"""What every folder stands on: threads, argument checks, names, array conversion, files, optional packages, memory.

Knows no mathematics and imports nothing else of hashlearn.
"""
