"""A fuzz target for each file format: files are damaged or forged, with right checksums, and given to their readers.

    python -m benchmarks.fuzz --seconds 600               every target, in turns
    python -m benchmarks.fuzz --files 50000 model index   so many files of each of these targets

A file must be refused with the exception that its reader documents, or be read and then work: margins are finite, codes
have their shape, nothing that loading could have refused fails later. A crash, a file that takes longer than
``--file-seconds``, a MemoryError under ``--megabytes``, or any other exception is a failure. Its file is kept.
"""
