"""Checks proofs that no signs x ∈ {−1, +1}ⁿ have xᵀAx below a bound, in exact integer arithmetic. No solver is trusted.

This file imports nothing of the package, so it can be read, and copied, alone. A = N · 2^e with integers N, exactly.
The proof is a tree, written node by node: after a node come all nodes below its first child, then those below its
second. An inner node names two variables i and j: its children are x_i = x_j and x_i = −x_j. So in every node the
variables form groups: x = P z with one sign in z for each group. A leaf has a dual point: integers y, and cuts b (an
odd number of entries ±1) with multipliers γ ≥ 0, all over 2^k. As bᵀx is odd, (bᵀx)² ≥ 1. With T = PᵀSP and
S = 2^k N − Diag(y) − Σ γ bbᵀ, every x = P z of the leaf has

    2^k xᵀNx = zᵀTz + Σ y + Σ γ (bᵀx)² ≥ m · λ_min(T) + Σ y + Σ γ.

For λ_min(T), a floating point Cholesky factor is rounded to integers L. The residual E = T − LLᵀ is exact, and
λ_min(T) ≥ −max_i Σ_j |E_ij|. Last, the values xᵀNx differ by multiples of 4·gcd(Σ_j N_ij, 2 N_ij; i ≠ j), so a
bound rounds up to the next possible value. A leaf of up to 12 groups may be enumerated instead. Cost: O(m³) for a leaf.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import zlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FORMAT, VERSION = "hashlearn bqp proof", 1
LARGEST_FILE = 1 << 29  # bytes, unpacked
LARGEST_CONTENT = 1 << 30  # bytes of its lists, objects and numbers in memory, about
LONGEST_INTEGER = 8192  # bits
LONGEST_CUT = 15  # entries
CUTS_AT_ONCE = 4096  # which bounds the memory
MOST_ENUMERATED = 12  # groups
IntArray = NDArray[Any]  # int64, or Python integers where int64 is too small


class Verdict(NamedTuple):
    """Whether the proof holds, why not, the exact value of its signs, the proven bound, and the number of leaves."""

    accepted: bool
    reason: str
    value: Fraction | None = None
    bound: Fraction | None = None
    n_leaves: int = 0


class Refused(ValueError):
    """The proof does not prove its claim; the message says where."""


class Dual(NamedTuple):
    """The dual point of a leaf, over 2^shift: y for every variable, cuts as signed variables from 1 on, γ for each."""

    shift: int
    y: list[int]
    cuts: list[list[int]]
    gamma: list[int]


def check_proof(A: Any, proof: Any) -> Verdict:
    """Whether ``proof`` (what `read_proof` returns) proves that no signs have xᵀAx below its bound.

    A is an array or has ``toarray()``; its float64 entries are taken exactly. A `Problem` counts with its own
    coefficients, which float64 entries of A may round. If value and bound of an accepted verdict are equal, the signs
    in the proof are optimal.
    """
    N, exponent = exact_matrix(getattr(A, "operator", A))
    content = getattr(proof, "content", proof)
    try:
        _require(isinstance(content, Mapping), "the proof is not a JSON object")
        _require(content.get("format") == FORMAT, f"the format must be {FORMAT!r}, got {_text(content.get('format'))}")
        for name, known in (("version", VERSION), ("n", len(N)), ("exponent", exponent)):
            number = _integer(content.get(name), name)
            _require(number == known, f"{name} is {_text(number)}, but must be {known} for this problem")
        is_same = content.get("problem") == digest(N, exponent)
        _require(is_same, "the proof is about another problem (its digest differs)")
        value, bound = _integer(content.get("value"), "value"), _integer(content.get("bound"), "bound")
        x = np.array(_integers(content.get("x"), "x", len(N)), dtype=object)
        _require(bool((abs(x) == 1).all()), "x must hold only −1 and 1")
        _require(int(x @ N @ x) == value, f"x has the value {int(x @ N @ x)}, not {_text(value)}")
        n_leaves = _check_tree(N, content.get("nodes"), bound)
        _require(bound <= value, "the bound is above the value")
    except Refused as refusal:
        return Verdict(False, str(refusal))
    unit = Fraction(2) ** exponent
    return Verdict(True, "every leaf is proven", value * unit, bound * unit, n_leaves)


def read_proof(path: str | os.PathLike[str]) -> Any:
    """The content of a proof file, gzipped if it begins like one; ValueError if it is no JSON."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            data = (gzip.GzipFile(fileobj=file) if zipped else file).read(LARGEST_FILE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{os.fspath(path)}: the gzip file is damaged: {error}") from None
    memory = 64 * data.count(b"[") + 240 * data.count(b"{") + 40 * data.count(b",")
    if len(data) > LARGEST_FILE or memory > LARGEST_CONTENT:
        raise ValueError(f"{os.fspath(path)}: would need over {memory >> 20:,} MiB of memory; no proof is that large")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)}: is not a proof in JSON, or truncated: {str(error)[:200]}") from None


def exact_matrix(A: Any) -> tuple[IntArray, int]:
    """``(N, e)`` with A = N · 2^e and Python integers N that are not all even."""
    form = A.exact_form() if hasattr(A, "exact_form") else None
    if form is not None:
        return reduced(form.N, form.exponent)
    array = np.asarray(A.toarray() if hasattr(A, "toarray") else A)
    known = array.dtype.kind in "iub" or array.dtype in (np.float64, np.float32)
    if array.ndim != 2 or len(array) != array.shape[1] or not array.size or not known:
        what = f"shape {array.shape} of {array.dtype}" if array.ndim else type(A).__name__
        raise ValueError(f"A must be a Problem or a square matrix of real numbers, got {what}")
    if not np.isfinite(array).all() or not np.array_equal(array, array.T):
        raise ValueError("A must be finite and exactly symmetric")
    return reduced(*exact_integers(array))


def reduced(N: IntArray, exponent: int) -> tuple[IntArray, int]:
    """The same numbers with integers that are not all even."""
    common = math.gcd(*N.flat)
    if common == 0:
        return N, 0
    power = common & -common
    return N // power, exponent + power.bit_length() - 1


def exact_integers(array: NDArray[Any]) -> tuple[IntArray, int]:
    """``(N, e)`` with array = N · 2^e and Python integers N."""
    if array.dtype.kind != "f":
        return array.astype(object), 0
    mantissas, exponents = np.frexp(array.astype(np.float64))
    exponent = int(exponents[mantissas != 0.0].min(initial=0)) - 53
    powers = [1 << max(int(q) - 53 - exponent, 0) for q in exponents.flat]
    whole = (mantissas * 2.0**53).astype(np.int64).astype(object)
    return whole * np.array(powers, object).reshape(array.shape), exponent


def digest(N: IntArray, exponent: int) -> str:
    """SHA-256 of the exact entries: n and e, then a line ``i j N_ij`` for every nonzero entry with i ≤ j."""
    lines = [f"{len(N)} {exponent}"]
    lines += [f"{i} {j} {N[i, j]}" for i, j in zip(*np.nonzero(np.triu(N)), strict=True)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Lattice(NamedTuple):
    """All values xᵀNx are ``one`` plus a multiple of ``step``; they are all equal if the step is 0."""

    one: int
    step: int

    @classmethod
    def of(cls, N: IntArray) -> Lattice:
        """Flipping x_i changes xᵀNx by −4 x_i Σ_{j≠i} N_ij x_j. The value of x = (1, …, 1) is ΣN."""
        rows = N.sum(axis=1) - N.diagonal()
        return cls(int(N.sum()), 4 * math.gcd(*rows, 2 * math.gcd(*N[np.triu_indices(len(N), 1)])))

    def ceiling(self, bound: Fraction | int) -> int:
        """The smallest possible value that is not below ``bound``."""
        return self.one if self.step == 0 else self.one - (self.one - bound) // self.step * self.step


class Groups(NamedTuple):
    """A node: x_v = sign[v] · z[group[v]] for every variable v, with groups numbered from 0 without gaps."""

    group: NDArray[np.int64]
    sign: NDArray[np.int64]

    @classmethod
    def all_apart(cls, n: int) -> Groups:
        """The root."""
        return cls(np.arange(n), np.ones(n, np.int64))

    def joined(self, i: int, j: int, sign: int) -> Groups:
        """The child with x_i = sign · x_j, for variables of different groups."""
        stays, goes = sorted((int(self.group[i]), int(self.group[j])))
        turn = sign * int(self.sign[i]) * int(self.sign[j])
        moved = self.group == goes
        group = np.where(moved, stays, self.group - (self.group > goes))
        return Groups(group, np.where(moved, turn * self.sign, self.sign))

    def contracted(self, S: IntArray) -> IntArray:
        """PᵀSP."""
        m = int(self.group.max()) + 1
        signed = S * np.multiply.outer(self.sign, self.sign).astype(S.dtype)
        rows = np.zeros((m, len(S)), S.dtype)
        np.add.at(rows, self.group, signed)
        T = np.zeros((m, m), S.dtype)
        np.add.at(T, self.group, rows.T)
        return T


def leaf_bound(N: IntArray, groups: Groups, dual: Dual) -> Fraction:
    """A proven lower bound on xᵀNx in a node."""
    T = groups.contracted(_dual_matrix(N, dual))
    total = (sum(dual.y) + sum(dual.gamma)) * (1 << max(-dual.shift, 0))
    return (total + len(T) * _eigenvalue_bound(T)) / (1 << max(dual.shift, 0))


def enumerated_bound(N: IntArray, groups: Groups) -> tuple[int, IntArray]:
    """The smallest xᵀNx in a node of few groups, and its z."""
    T = groups.contracted(N)
    T = T.astype(np.int64 if int(abs(T).sum()) < 1 << 62 else object)
    Z = 1 - 2 * (np.arange(1 << (len(T) - 1))[:, None] >> np.arange(len(T)) & 1)
    values = ((Z @ T) * Z).sum(axis=1)
    best = int(np.argmin(values))
    return int(values[best]), Z[best]


def _dual_matrix(N: IntArray, dual: Dual) -> IntArray:
    """S, times 2^−k if k is negative, in int64 if no sum can overflow."""
    up, down = 1 << max(dual.shift, 0), 1 << max(-dual.shift, 0)
    most = int(abs(N).sum()) * up + sum(abs(y) for y in dual.y) * down
    most += sum(g * len(b) ** 2 for g, b in zip(dual.gamma, dual.cuts, strict=True)) * down
    kind: Any = np.int64 if most < 1 << 62 else object
    S = (N * up).astype(kind)
    S[np.diag_indices(len(N))] -= np.array([y * down for y in dual.y], kind)
    for first in range(0, len(dual.cuts), CUTS_AT_ONCE):
        cuts = [cut + [0] * (LONGEST_CUT - len(cut)) for cut in dual.cuts[first : first + CUTS_AT_ONCE]]
        gamma = np.array([g * down for g in dual.gamma[first : first + CUTS_AT_ONCE]], kind)
        _subtract_cuts(S, np.array(cuts, np.int64), gamma)
    return S


def _subtract_cuts(S: IntArray, cuts: NDArray[np.int64], gamma: IntArray) -> None:
    """S − Σ γ bbᵀ in place; a cut is a row of signed variables, with zeros behind."""
    width = int(np.count_nonzero(cuts, axis=1).max())
    place, sign = abs(cuts[:, :width]) - 1, np.sign(cuts[:, :width]).astype(S.dtype)
    entries = gamma[:, None, None] * sign[:, :, None] * sign[:, None, :]
    rows, columns = np.broadcast_arrays(place[:, :, None], place[:, None, :])
    np.subtract.at(S, (rows, columns), entries)


def _eigenvalue_bound(T: IntArray) -> Fraction:
    """A number that no eigenvalue of the symmetric integer matrix T is below."""
    T = T.astype(object)
    size = max(int(abs(T).max()).bit_length(), 1)
    unused = max(size - 900, 0)
    F = (T >> unused).astype(np.float64) * 2.0 ** (unused - size)
    shift = 0.0
    while True:  # a large enough shift makes F positive definite
        try:
            L = np.linalg.cholesky(F + shift * np.eye(len(F)))
            break
        except np.linalg.LinAlgError:
            shift = max(16.0 * shift, 2.0**-50)
    limb = min(26, (62 - len(T).bit_length()) // 2)
    bits = 2 * limb - 1 - math.frexp(float(abs(L).max()))[1]
    whole = np.rint(np.ldexp(L, bits)).astype(np.int64)  # below 2^(2·limb − 1)
    up = 2 * bits - size
    E = T * (1 << max(up, 0)) - _square(whole, limb) * (1 << max(-up, 0))
    return Fraction(-int(abs(E).sum(axis=1).max()), 1 << max(up, 0))


def _square(L: NDArray[np.int64], limb: int) -> IntArray:
    """LLᵀ exactly. Both halves of an entry have at most ``limb`` bits, so no sum of products reaches 2⁶³."""
    high, low = L >> limb, L & ((1 << limb) - 1)
    mixed = (high @ low.T).astype(object)
    parts = (high @ high.T).astype(object), mixed + mixed.T, (low @ low.T).astype(object)
    return parts[0] * (1 << 2 * limb) + parts[1] * (1 << limb) + parts[2]


def _check_tree(N: IntArray, nodes: Any, bound: int) -> int:
    """Every inner node has both children, and every leaf proves the bound. Returns the number of leaves."""
    _require(isinstance(nodes, list), "nodes must be a list")
    n, lattice, n_leaves = len(N), Lattice.of(N), 0
    open_nodes = [Groups.all_apart(n)]  # that come next, the last one first
    for index, node in enumerate(nodes):
        where = f"node {index}"
        _require(bool(open_nodes), f"{where}: all nodes above it have their children already")
        groups = open_nodes.pop()
        kinds = [kind for kind in ("branch", "dual", "enumerate") if isinstance(node, dict) and kind in node]
        _require(len(kinds) == 1, f"{where}: must be an object with one of branch, dual and enumerate")
        if kinds == ["branch"]:
            i, j = (v - 1 for v in _integers(node["branch"], f"{where}: branch", 2))
            _require(0 <= i < n and 0 <= j < n, f"{where}: branch names a variable outside 1..{n}")
            _require(groups.group[i] != groups.group[j], f"{where}: the variables of branch are in one group already")
            open_nodes += [groups.joined(i, j, -1), groups.joined(i, j, 1)]
            continue
        n_leaves += 1
        if kinds == ["dual"]:
            proven = leaf_bound(N, groups, read_dual(node["dual"], n, where))
        else:
            m = int(groups.group.max()) + 1
            _require(m <= MOST_ENUMERATED, f"{where}: {m} groups are too many to enumerate ({MOST_ENUMERATED} at most)")
            proven = Fraction(enumerated_bound(N, groups)[0])
        reached = lattice.ceiling(proven)
        _require(reached >= bound, f"{where}: only {_text(reached)} is proven, the claimed bound is {_text(bound)}")
    _require(not open_nodes, f"{len(open_nodes)} nodes are missing at the end")
    return n_leaves


def read_dual(dual: Any, n: int, where: str) -> Dual:
    """A leaf's dual point with all its conditions checked: odd cuts of distinct variables, multipliers γ ≥ 0."""
    _require(isinstance(dual, dict), f"{where}: dual is not an object")
    shift = _integer(dual.get("shift"), f"{where}: shift")
    _require(abs(shift) <= LONGEST_INTEGER, f"{where}: shift {_text(shift)} is too large")
    y, rows = _integers(dual.get("y"), f"{where}: y", n), dual.get("cuts")
    _require(isinstance(rows, list), f"{where}: cuts must be a list")
    result = Dual(shift, y, [], [])
    for t, row in enumerate(rows):
        name = f"{where}: cut {t}"
        multiplier, *cut = _integers(row, name)
        _require(multiplier >= 0, f"{name} has a negative multiplier")
        _require(len(cut) % 2 == 1, f"{name} has an even number of entries, so it is not valid")
        _require(len(cut) <= LONGEST_CUT, f"{name} has more than {LONGEST_CUT} entries")
        members = {abs(v) for v in cut}
        _require(len(members) == len(cut), f"{name} repeats a variable")
        _require(min(members) >= 1 and max(members) <= n, f"{name} names a variable outside 1..{n}")
        result.cuts.append(cut)
        result.gamma.append(multiplier)
    return result


def _integers(value: Any, name: str, length: int | None = None) -> list[int]:
    is_list = isinstance(value, list) and value != [] and length in (None, len(value))
    _require(is_list, f"{name} must be a list of {'' if length is None else f'{length} '}integers")
    return [_integer(entry, name) for entry in value]


def _integer(value: Any, name: str) -> int:
    if type(value) is not int:
        raise Refused(f"{name} must be an integer, got {_text(value)}")
    if value.bit_length() > LONGEST_INTEGER:
        raise Refused(f"{name} is an integer of more than {LONGEST_INTEGER} bits")
    return value


def _text(value: Any) -> str:
    """A part of the proof for a message: short, whatever it is."""
    if type(value) is int and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print very long ones
    text = repr(value) if isinstance(value, int | str | float | None) else type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Refused(reason)
