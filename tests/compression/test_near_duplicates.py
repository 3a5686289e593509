"""Near-duplicates: right pairs, a promise that holds, groups, and answers for every kind of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hashlearn import near_duplicates
from hashlearn.bits import hamming_distances
from hashlearn.compression import NearDuplicates
from hashlearn.compression.near_duplicates import _SimilarRows, accepted_radius
from hashlearn.compression.promise import fewest_values
from hashlearn.core.progress import Progress
from hashlearn.hashers import ITQ, LSH, SignCodes

N = 1_500


def planted(n: int = N, n_features: int = 24, seed: int = 0, share: float = 0.6) -> np.ndarray:
    """Random rows; a share of them has a copy with noise of random size and another length."""
    rng = np.random.default_rng(seed)
    n_copies = int(n * share / 2)
    rows = rng.standard_normal((n - n_copies, n_features))
    noise = rng.uniform(0.05, 0.6, (n_copies, 1)) * rng.standard_normal((n_copies, n_features))
    return rng.permutation(np.concatenate([rows, rng.uniform(0.5, 2.0, (n_copies, 1)) * (rows[:n_copies] + noise)]))


def true_pairs(X: np.ndarray, similarity: float) -> set[tuple[int, int]]:
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    return {(int(i), int(j)) for i, j in np.argwhere(np.triu(unit @ unit.T >= similarity, 1))}


def found_pairs(found: NearDuplicates) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in found.pairs}


def missed_share(found: NearDuplicates, true: set[tuple[int, int]]) -> float:
    """Mean share of a row's near-duplicates that are missing, over rows that have one."""
    missing = np.bincount(np.array(sorted(true - found_pairs(found)), int).ravel(), minlength=found.n_rows)
    near = np.bincount(np.array(sorted(true)).ravel(), minlength=found.n_rows)
    return float((missing[near > 0] / near[near > 0]).mean())


def by_codes(X: np.ndarray, **settings: Any) -> NearDuplicates:
    found = near_duplicates(X, **{"similarity": 0.95, "missed": 0.1, "n_checked": 500, **settings})
    assert not found.exact
    assert len(found_pairs(found)) == len(found.pairs)
    return found


def test_few_rows_are_compared_by_floats_and_the_answer_is_exact() -> None:
    X = planted()
    found = near_duplicates(X, similarity=0.9)
    assert found_pairs(found) == true_pairs(X, 0.9) != set()
    assert (found.exact, found.radius, found.promised_missed, found.n_checked) == (True, None, 0.0, N)
    assert found.n_candidates == N * (N - 1) // 2
    assert found.n_with_duplicates == len(np.unique(found.pairs))


def test_each_pair_of_codes_within_the_radius_is_one_candidate() -> None:
    X = planted()
    hasher = LSH(n_bits=64, random_state=0).fit(X)
    found = by_codes(X, hasher=hasher)
    distances = hamming_distances(hasher.encode(X), hasher.encode(X))
    assert found.n_candidates == np.count_nonzero(np.triu(distances <= found.radius, 1))


def test_codes_find_true_pairs_only_and_keep_the_promise() -> None:
    X = planted()
    true = true_pairs(X, 0.95)
    found = by_codes(X)
    assert found_pairs(found) <= true
    assert missed_share(found, true) <= found.promised_missed == 0.1
    assert found.radius is not None
    assert len(found.pairs) <= found.n_candidates + found.n_checked < N * (N - 1) // 10
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    first, second = found.pairs.T
    np.testing.assert_allclose(found.similarities, (unit[first] * unit[second]).sum(axis=1), rtol=0, atol=1e-12)
    assert (np.lexsort((second, first)) == np.arange(len(first))).all()
    assert (first < second).all()
    assert found.pairs.dtype == np.int64


def test_all_pairs_of_checked_rows_are_found() -> None:
    X = planted()
    true = true_pairs(X, 0.95)
    found = by_codes(X, missed=0.4, n_bits=24, random_state=7)
    checked = set(np.random.default_rng(7).permutation(N)[:500].tolist())
    assert {pair for pair in true if checked & {*pair}} <= found_pairs(found) < true


def test_codes_that_exclude_too_little_give_an_exact_answer() -> None:
    X = planted()
    seen: list[Progress] = []
    found = near_duplicates(X, n_checked=500, missed=0.1, hasher=_Noise(n_bits=16), progress=seen.append)
    assert found.exact
    assert found_pairs(found) == true_pairs(X, 0.95)
    assert seen[-1].fraction == 1.0


class _Noise(LSH):
    """Codes that know nothing about the rows."""

    def encode(self, X: Any) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 256, (len(X), 2), dtype=np.uint8)


def test_rare_duplicates_make_it_check_more_rows_and_at_last_all() -> None:
    X = planted(share=0.3)
    some = near_duplicates(X, similarity=0.95, missed=0.2, n_checked=100)
    assert (some.exact, some.n_checked) == (False, 400)
    rare = np.concatenate([planted(share=0.0), planted(share=0.0)[:3]])
    found = near_duplicates(rare, n_checked=10)
    assert found.exact
    assert found_pairs(found) >= {(i, N + i) for i in range(3)}


def test_the_promise_is_broken_no_more_often_than_it_says() -> None:
    """60 draws at 80 % confidence: more than 20 broken promises have a probability below 0.6 % if each is kept."""
    X = planted(n=1_200, n_features=16)
    true = true_pairs(X, 0.95)
    shares = [
        missed_share(by_codes(X, confidence=0.8, n_checked=200, n_bits=32, random_state=seed), true)
        for seed in range(60)
    ]
    broken = sum(share > 0.1 for share in shares)
    assert broken <= binom.ppf(0.994, 60, 0.2)
    assert max(shares) > 0.0


def test_the_radius_is_the_smallest_that_can_be_shown() -> None:
    """Distances from 0 to 19 are equally frequent: 75 % are at most 14. 2,000 rows suffice to show that 70 % are."""
    rng = np.random.default_rng(0)
    n, n_bits = 4_000, 64
    bits = np.concatenate([rng.random((n // 2, n_bits)) < 0.5] * 2)
    for i in range(n // 2):
        bits[i, : i % 20] ^= True
    order = rng.permutation(n)
    codes = np.packbits(bits, axis=1)

    def radius(n_drawn: int, claim: float, confidence: float = 0.99) -> int:
        first = order[:n_drawn]
        pairs = (first, (first + n // 2) % n, np.ones(n_drawn))
        return accepted_radius(pairs, order, codes, n_bits, claim, confidence)

    assert radius(2_000, 0.7) == 14
    assert radius(2_000, 0.65) == 13
    assert radius(2_000, 0.7, confidence=1 - 1e-9) == 15
    assert 14 < radius(100, 0.7) < 20
    fewest = fewest_values(0.7, 0.99) * 5 // 4 + 1
    assert radius(100, 0.7) <= radius(fewest, 0.7) <= 19


def test_a_row_counts_once_however_many_near_duplicates_it_has() -> None:
    """Half of the rows have 50 near-duplicates with the same code, half have one, which differs in 10 bits."""
    n = 400
    codes = np.zeros((n + 2, 2), np.uint8)
    codes[n + 1] = [0b11111111, 0b11000000]
    order = np.random.default_rng(0).permutation(n)
    order = np.concatenate([order, [n, n + 1]])
    first = np.concatenate([np.repeat(np.arange(0, n, 2), 50), np.arange(1, n, 2)])
    second = np.where(first % 2 == 0, n, n + 1)
    assert accepted_radius((first, second, np.ones(len(first))), order, codes, 16, 0.7, 0.99) == 10


def test_pairs_close_to_the_similarity_are_decided_in_float64() -> None:
    offsets = np.arange(-50, 51)
    cosines = 0.95 + 1e-9 * offsets
    X = np.concatenate([[[1.0, 0.0]], np.column_stack([cosines, np.sqrt(1.0 - cosines**2)])])
    expected = np.flatnonzero(offsets >= 0) + 1
    similar = _SimilarRows(X, 0.95, max_pairs=10_000, progress=None)
    codes = np.zeros((len(X), 1), np.uint8)
    for first, second, _ in (similar.by_floats(), similar.by_floats(np.array([0])), similar.by_codes(codes, 8, 0)[1]):
        np.testing.assert_array_equal(np.sort(second[first == 0]), expected)


def test_same_seed_same_answer_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    X, answers = planted(), []
    before = X.copy()
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(by_codes(X, random_state=3))
    np.testing.assert_array_equal(answers[0].pairs, answers[1].pairs)
    np.testing.assert_array_equal(answers[0].similarities, answers[1].similarities)
    assert answers[0].radius == answers[1].radius
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("hasher", [SignCodes(n_bits=20), ITQ(n_bits=16, n_iter=5).fit(planted())])
def test_any_hasher(hasher: Any) -> None:
    X = planted()
    given = dict(vars(hasher))
    found = by_codes(X, hasher=hasher)
    assert missed_share(found, true_pairs(X, 0.95)) <= 0.1
    assert found.radius is not None
    assert found.radius < hasher.n_bits
    assert vars(hasher).keys() == given.keys()


def test_more_bits_than_features_or_rows() -> None:
    X = planted(n=1_000, n_features=3)
    found = near_duplicates(X, similarity=0.9999, missed=0.3, n_checked=50, n_bits=1_024)
    assert found_pairs(found) <= true_pairs(X, 0.9999)
    assert len(near_duplicates(X[:4], n_bits=128, similarity=1.0).pairs) == 0


def test_equal_rows_multiples_and_zeros() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 300))
    X = np.concatenate([rows, np.zeros((2, 300)), rows, 4.0 * rows, -rows, np.ones((2, 300))])
    found = near_duplicates(X, similarity=1.0)
    expected = {(i, 6 + i) for i in range(4)} | {(i, 10 + i) for i in range(4)} | {(6 + i, 10 + i) for i in range(4)}
    assert found_pairs(found) == expected | {(18, 19)}
    assert found.similarities.max() <= 1.0


def test_groups_follow_chains_and_keep_their_lowest_row() -> None:
    angles = np.radians([0.0, 90.0, 10.0, 20.0, 95.0, 200.0])
    found = near_duplicates(np.column_stack([np.cos(angles), np.sin(angles)]), similarity=np.cos(np.radians(11.0)))
    assert found_pairs(found) == {(0, 2), (2, 3), (1, 4)}
    groups = found.groups()
    assert groups[0] == groups[2] == groups[3]
    assert len(set(groups[[0, 1, 5]])) == 3
    np.testing.assert_array_equal(found.keep(), [0, 1, 5])


@pytest.mark.parametrize("settings", [{}, {"n_checked": 20}])
def test_too_many_pairs_are_refused(settings: dict[str, Any]) -> None:
    X = np.ones((300, 3))
    words = "more than max_pairs=1000 pairs with a cosine of at least 0.95; raise similarity, or raise max_pairs"
    with pytest.raises(ValueError, match=words):
        near_duplicates(X, max_pairs=1_000, **settings)
    assert len(near_duplicates(X, max_pairs=300 * 299 // 2).pairs) == 300 * 299 // 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"X": [[1.0, np.nan], [1.0, 2.0]]}, r"X must be finite, got nan at index \(0, 1\)"),
        ({"X": [[1.0, 2.0]]}, r"X must have at least 2 rows to compare, got shape \(1, 2\)"),
        ({"X": [1.0, 2.0]}, "X must have 2 dimension"),
        ({"similarity": 0.0}, "similarity must be a number above 0 and at most 1, got 0.0"),
        ({"similarity": 1.01}, "similarity must be"),
        ({"similarity": "0.9"}, "similarity must be"),
        ({"missed": 0.0}, "missed must be a number above 0 and below 1, got 0.0"),
        ({"missed": 1.0}, "missed must be"),
        ({"missed": np.nan}, "missed must be"),
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1, got 1.0"),
        ({"confidence": True}, "confidence must be"),
        ({"n_bits": 0}, "n_bits must be an integer from 1 to"),
        ({"n_checked": 0}, "n_checked must be an integer of at least 1, got 0"),
        ({"max_pairs": 1.5}, "max_pairs must be an integer of at least 1, got 1.5"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_input(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        near_duplicates(**{"X": np.eye(2), **settings})


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"hasher must be a hasher of hashlearn\.hashers"):
        near_duplicates(np.eye(2), hasher="lsh")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="X must hold numbers"):
        near_duplicates([["a", "b"], ["c", "d"]])


def test_a_share_too_small_to_test_gives_an_exact_answer() -> None:
    X = planted()
    for missed in (1e-3, 1e-17):
        found = near_duplicates(X, missed=missed, n_checked=100)
        assert found.exact
        assert found_pairs(found) == true_pairs(X, 0.95)


@pytest.mark.parametrize("scale", [1e-170, 1e-300])
def test_units_change_no_pair(scale: float) -> None:
    X = planted(400)
    expected = near_duplicates(X, similarity=0.9)
    assert len(expected.pairs) > 0
    np.testing.assert_array_equal(near_duplicates(scale * X, similarity=0.9).pairs, expected.pairs)
