"""One toy of each kind. `tests/test_adding.py` adds them to a copy of the repository."""
