"""Resumed encodings: shards, marks, digests of inputs and hashers, and columns of files."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

ENCODING = ("tests/streams/test_encoding.py",)
FOLDERS = ("tests/distributed/test_encode_evaluate.py",)

MUTANTS = [
    Mutant(
        "a shard of other rows, or of another hasher, is taken up",
        "streams/shards.py",
        "right = len(held) == n_rows * self._width + len(work) and held.endswith(work)",
        "right = len(held) == n_rows * self._width + len(work)",
        ENCODING,
    ),
    Mutant(
        "a damaged shard is taken up",
        "streams/shards.py",
        "return data if right and hashlib.sha256(held).digest() == digest else None",
        "return data if right else None",
        ENCODING,
    ),
    Mutant(
        "two processes write the same codes at once",
        "streams/shards.py",
        "locked = try_lock(handle)",
        "locked = None",
        ENCODING,
    ),
    Mutant(
        "files of others in the folder of shards are removed",
        "streams/shards.py",
        "if OURS.fullmatch(path.name):",
        "if True:",
        ENCODING,
    ),
    Mutant(
        "every shard is stored as the first",
        "streams/shards.py",
        'return self._folder / f"{shard:010d}"',
        'return self._folder / f"{0:010d}"',
        ENCODING,
    ),
    Mutant(
        "codes of two hashers are mixed",
        "streams/shards.py",
        "described = [hashlearn.__version__, named, identity, int(hasher.n_bits)]",
        "described = [hashlearn.__version__, identity, int(hasher.n_bits)]",
        ENCODING,
    ),
    Mutant(
        "two hashers that cannot be named share their codes",
        "streams/shards.py",
        "named = self.model or (None if identity else secrets.token_hex(32))",
        "named = self.model",
        ENCODING,
    ),
    Mutant(
        "dense rows are not part of what was encoded",
        "streams/shards.py",
        "            self._digest.update(bytes_of(batch))\n",
        "            pass\n",
        ENCODING,
    ),
    Mutant(
        "sparse rows are not part of what was encoded",
        "streams/shards.py",
        "                self._digest.update(bytes_of(part))\n",
        "                pass\n",
        ENCODING,
    ),
    Mutant(
        "an input that changes while it is encoded goes unnoticed",
        "streams/encoding.py",
        "    if changed or (after.st_ctime_ns != before.st_ctime_ns and not has_same_rows()):",
        "    if changed:",
        ENCODING,
    ),
    Mutant(
        "columns in another order than the model's are encoded",
        "streams/encoding.py",
        "        if here != there:",
        "        if False:",
        (*ENCODING, "tests/cli/test_fit_and_encode.py"),
    ),
    Mutant(
        "ids of a part of a data set begin at 0",
        "streams/encoding.py",
        "parquet_bytes(shards.codes(), source, n_bits, first_id, work.model, model_name)",
        "parquet_bytes(shards.codes(), source, n_bits, 0, work.model, model_name)",
        (*ENCODING, *FOLDERS),
    ),
    Mutant(
        "Parquet codes do not name their model",
        "streams/code_files.py",
        "to_arrow(group, ids, n_bits, model=model, fields=fields)",
        "to_arrow(group, ids, n_bits, fields=fields)",
        (*ENCODING, *FOLDERS),
    ),
    Mutant(
        "fitted attributes are not part of a hasher's fingerprint",
        "persistence/values.py",
        "described = [method, n_bits, needed, shapes, {name: sha256[name] for name in kept}]",
        "described = [method, n_bits, needed, shapes]",
        (*ENCODING, *FOLDERS),
    ),
    Mutant(
        "codes that were damaged after their mark was written stay",
        "distributed/encoding.py",
        'return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256',
        "return True",
        FOLDERS,
    ),
    Mutant(
        "codes of inputs that are gone stay in the folder",
        "distributed/encoding.py",
        "for place in (output, sidecar_of(output), _place(output)):",
        "for place in (sidecar_of(output), _place(output)):",
        FOLDERS,
    ),
    Mutant(
        "codes of inputs that are still there are removed",
        "distributed/encoding.py",
        "if not output.exists() or (mark is not None and gone and mark.is_of(output)):",
        "if not output.exists() or (mark is not None and mark.is_of(output)):",
        FOLDERS,
    ),
    Mutant(
        "a damaged mark is believed",
        "distributed/encoding.py",
        "return mark if right else None",
        "return mark",
        FOLDERS,
    ),
]
