"""Packing of codes and Hamming distance."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

PACKING = ("tests/bits/test_packing.py",)
HAMMING = ("tests/bits/test_hamming.py",)

MUTANTS = [
    Mutant(
        "bits past the end of a code are not checked",
        "bits/packing.py",
        "    if pad_mask and (padded := array[:, -1] & pad_mask).any():",
        "    if False:",
        PACKING,
    ),
    Mutant(
        "only the first of the bits past the end is checked",
        "bits/packing.py",
        "pad_mask = (1 << (8 * width - n_bits)) - 1",
        "pad_mask = (1 << (8 * width - n_bits)) >> 1",
        PACKING,
    ),
    Mutant(
        "signs are packed with the lowest bit first",
        "bits/packing.py",
        'return np.packbits(_two_valued(signs, "signs", (-1, 1)) > 0, axis=1)',
        'return np.packbits(_two_valued(signs, "signs", (-1, 1)) > 0, axis=1, bitorder="little")',
        PACKING,
    ),
    Mutant(
        "unpacking takes the last bits of the last byte, not the first",
        "bits/packing.py",
        'np.unpackbits(packed_codes(packed, "packed", n_bits), axis=1, count=n_bits)',
        'np.unpackbits(packed_codes(packed, "packed", n_bits), axis=1)[:, -n_bits:]',
        PACKING,
    ),
    Mutant(
        "codes that are wider than n_bits are taken",
        "bits/packing.py",
        "    if array.shape[1] != width:",
        "    if array.shape[1] < width:",
        PACKING,
    ),
    Mutant(
        "values between the two allowed ones pass for signs or bits",
        "bits/packing.py",
        "wrong = (array != allowed[0]) & (array != allowed[1])",
        "wrong = (array < allowed[0]) | (array > allowed[1])",
        PACKING,
    ),
    Mutant(
        "tensors are packed with the lowest bit first",
        "bits/packing.py",
        "places = torch.arange(7, -1, -1, dtype",
        "places = torch.arange(0, 8, dtype",
        ("tests/hashers/test_two_step_tensors.py",),
    ),
    Mutant(
        "the second word of a long code is left out of the distance",
        "bits/hamming.py",
        "for w in range(1, n_words):",
        "for w in range(2, n_words):",
        HAMMING,
    ),
    Mutant(
        "codes of unequal width are compared",
        "bits/hamming.py",
        "    if a.shape[1] != b.shape[1]:",
        "    if a.shape[1] > b.shape[1]:",
        HAMMING,
    ),
]
