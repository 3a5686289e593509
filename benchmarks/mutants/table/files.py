"""Files that are written whole or not at all, and the header of model files."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

# Without the tests that kill processes: these take long, and their processes import the installed package.
WRITING = tuple(
    f"tests/persistence/test_writing.py::{name}"
    for name in (
        "test_a_write_that_fails_halfway_leaves_nothing_behind",
        "test_writes_that_take_a_part_go_on_with_the_rest",
        "test_bytes_are_on_disk_before_the_file_takes_its_place_and_its_name_after",
        "test_what_was_written_is_read_back_before_it_takes_its_place",
        "test_permissions_and_links_stay",
        "test_what_kills_left_is_removed_by_the_next_writer",
        "test_without_locks_the_age_decides",
    )
)
FAULTS = ("tests/persistence/test_faults.py",)
FORGED = ("tests/persistence/test_forged_numbers.py",)
PROMISES = ("tests/persistence/test_promise.py",)
INDEX_FILES = ("tests/search/test_index_files.py",)
SPARSE = ("tests/streams/test_sparse_files.py",)

MUTANTS = [
    Mutant(
        "a power cut can leave an empty file: its bytes are not flushed to disk",
        "core/atomic_files.py",
        "            os.fsync(file.fileno())\n",
        "            pass\n",
        WRITING,
    ),
    Mutant(
        "a power cut can bring the old file back: its folder is not flushed to disk",
        "core/atomic_files.py",
        "    _sync_folder(place.parent)\n",
        "    pass\n",
        WRITING,
    ),
    Mutant(
        "a file takes its place without being read back",
        "core/atomic_files.py",
        "            check(beside)\n",
        "            pass\n",
        WRITING,
    ),
    Mutant(
        "files are written in place",
        "core/atomic_files.py",
        'beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}{UNFINISHED}")',
        "beside = place",
        WRITING,
    ),
    Mutant(
        "permissions of a file are lost when it is written again",
        "core/atomic_files.py",
        "            os.chmod(beside, place.stat().st_mode & 0o777)\n",
        "            place.stat()\n",
        WRITING,
    ),
    Mutant(
        "a link is replaced by a file",
        "core/atomic_files.py",
        "place, name = Path(os.path.realpath(path)), os.fspath(path)",
        "place, name = Path(path), os.fspath(path)",
        WRITING,
    ),
    Mutant(
        "what another process is writing is removed",
        "core/atomic_files.py",
        "if try_lock(handle) or time.time() - os.fstat(handle).st_mtime > STALE_SECONDS:",
        "if True:",
        WRITING,
    ),
    Mutant(
        "bytes that one write did not take are lost",
        "core/atomic_files.py",
        "    while len(data):\n        data = data[file.write(data) :]",
        "    file.write(data)",
        WRITING,
    ),
    Mutant(
        "a failed write leaves its unfinished file behind",
        "core/atomic_files.py",
        "        with contextlib.suppress(OSError):\n            beside.unlink()\n        raise",
        "        raise",
        WRITING,
    ),
    Mutant(
        "a header may claim four terabytes",
        "persistence/container.py",
        "LARGEST_HEADER = 4 * 2**20",
        "LARGEST_HEADER = 2**42",
        FAULTS,
    ),
    Mutant(
        "a header may reach eight bytes past the end of the file",
        "persistence/container.py",
        "    if 8 + length > file_size:",
        "    if length > file_size:",
        FAULTS,
    ),
    Mutant(
        "the checksum of the header is not compared",
        "persistence/container.py",
        "    if hashlib.sha256(blank).hexdigest().encode() != stored:",
        "    if False:",
        FAULTS,
    ),
    Mutant(
        "bytes between arrays that belong to none are taken",
        "persistence/container.py",
        "        if entry.first != end:",
        "        if entry.first < end:",
        FAULTS,
    ),
    Mutant(
        "bytes after the last array are taken",
        "persistence/container.py",
        "    if len(raw) + end != file_size:",
        "    if len(raw) + end > file_size:",
        FAULTS,
    ),
    Mutant(
        "keys may occur twice in a header",
        "persistence/container.py",
        "    if len(found) != len(pairs):",
        "    if False:",
        FAULTS,
    ),
    Mutant(
        "a header may hold any number of values",
        "persistence/container.py",
        "MOST_VALUES = 2**17",
        "MOST_VALUES = 2**40",
        FAULTS,
    ),
    Mutant(
        "arrays may be smaller than their bytes",
        "persistence/container.py",
        "math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]",
        "math.prod(shape) * dtype.itemsize > offsets[1] - offsets[0]",
        FAULTS,
    ),
    Mutant(
        "arrays may begin between two numbers",
        "persistence/container.py",
        " or offsets[0] % dtype.itemsize:",
        ":",
        FAULTS,
    ),
    Mutant(
        "the checksums of a model's arrays are not compared",
        "persistence/container.py",
        "if digest.hexdigest() != expected[name]:",
        "if False:",
        FAULTS,
    ),
    Mutant(
        "the checksum of an index file is not compared",
        "search/code_table.py",
        "if file.read(DIGEST_BYTES) != digest.digest():",
        "if False:",
        INDEX_FILES,
    ),
    Mutant(
        "FAISS settings of any size are taken from an index file",
        "search/faiss_backends.py",
        "least=least, most=MOST[setting.name])",
        "least=least)",
        INDEX_FILES,
    ),
    Mutant(
        "a model whose parts do not fit each other loads",
        "persistence/model_file.py",
        "if not whole or any(a != b for a, b in [*widths, (width, hasher.n_bits)]):",
        "if not whole:",
        (*FAULTS, *FORGED),
    ),
    Mutant(
        "a promise that is no object loads",
        "persistence/model_file.py",
        '_checked_promise(model.get("promise", {}))',
        "pass",
        PROMISES,
    ),
    Mutant(
        "the digest of a model changes with the codes of its training",
        "persistence/values.py",
        "if name not in NOT_NEEDED_TO_ENCODE}\n    kept",
        "}\n    kept",
        PROMISES,
    ),
    Mutant(
        "a model whose margins overflow loads",
        "persistence/model_file.py",
        "if not entry <= LARGEST_MARGIN:",
        "if False:",
        FORGED,
    ),
    Mutant(
        "NaN in a model's arrays loads",
        "persistence/values.py",
        'if array.dtype.kind == "f" and not np.isfinite(array).all():',
        "if False:",
        FORGED,
    ),
    Mutant(
        "NaN in the arrays of hash functions loads",
        "hash_functions/stored.py",
        'if kind == "f" and not may_be_infinite and not largest_entry(array) < np.inf:',
        "if False:",
        FORGED,
    ),
    Mutant(
        "numbers that index something may lie outside it",
        "hash_functions/stored.py",
        "if array.size and not (lowest <= int(array.min()) and int(array.max()) <= highest):",
        "if False:",
        (*FAULTS, *FORGED),
    ),
    Mutant(
        "a scale of zero loads",
        "hash_functions/stored.py",
        "SMALLEST_SCALE = float(np.finfo(np.float64).tiny)",
        "SMALLEST_SCALE = 0.0",
        FORGED,
    ),
    Mutant(
        "places of a sparse array may jump back and forth",
        "core/checks.py",
        "if (indptr[1:] < indptr[:-1]).any():  # a comparison cannot wrap around as a difference can",
        "if False:",
        (*SPARSE, *FORGED),
    ),
    Mutant(
        "columns of a sparse array may lie outside it",
        "core/checks.py",
        "if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < count):",
        "if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) <= count):",
        (*SPARSE, *FORGED),
    ),
    Mutant(
        "a sparse array may end before its entries do",
        "core/checks.py",
        "if first != 0 or last != len(indices):",
        "if first != 0 or last > len(indices):",
        (*SPARSE, *FORGED),
    ),
]
