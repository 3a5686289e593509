"""The verifier: what it accepts is true, forged proofs are refused, hostile files are harmless, and it stands alone."""

import ast
import copy
import gzip
import json
import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp.forgeries import Forger

from hashlearn import bqp
from hashlearn.bqp.proof import bound, check
from hashlearn.bqp.proof.check import Dual, Groups, Lattice, check_proof, exact_matrix, leaf_bound, read_proof
from tests.bqp.problems import all_signs, brute_force, random_symmetric


def symmetric(half: np.ndarray) -> np.ndarray:
    return np.tril(half) + np.tril(half, -1).T


@pytest.fixture(scope="module")
def proven():
    """A problem whose proof has several nodes, all leaves with dual points, and the proof's content."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "MOST_ROUNDS", 3)
        patch.setattr(bound, "WIDER", (99, 99))
        A = symmetric(np.random.default_rng(3).integers(-5, 6, (60, 60)).astype(float))
        solution = bqp.solve(A, "branch_and_bound", random_state=0)
    content = solution.details["proof"].content
    assert sum("branch" in node for node in content["nodes"]) >= 2
    assert all("enumerate" not in node for node in content["nodes"])
    return A, content


def test_the_proof_is_accepted_as_array_sparse_operator_and_integers(proven):
    A, content = proven
    for given in (A, sp.csr_array(A), bqp.as_operator(A), A.astype(int), A.astype(np.float32)):
        verdict = check_proof(given, content)
        assert verdict.accepted, verdict.reason
        assert verdict.value == verdict.bound == int(np.array(content["x"]) @ A @ np.array(content["x"]))
        assert verdict.n_leaves == sum("dual" in node for node in content["nodes"])


REASONS = {
    "even cut": "an even number of entries",
    "cut that repeats a variable": "repeats a variable",
    "cut outside": "names a variable outside 1..60",
    "negative multiplier": "a negative multiplier",
    "digest of another problem": "another problem",
    "other n": "n is 61",
    "other exponent": "exponent is 1, but must be 0",
    "other signs": "x has the value",
    "better value": "x has the value",
    "sign zero": "only −1 and 1",
    "raised dual": "is proven, the claimed bound is",
    "lowered dual": "is proven, the claimed bound is",
    "worse signs called optimal": "is proven, the claimed bound is",
    "higher bound": "is proven, the claimed bound is",
    "repeated node": "have their children already",
    "child in place of its parent": "is proven, the claimed bound is",
    "exchanged signs": "is proven, the claimed bound is",
    "equal signs": "is proven, the claimed bound is",
    "branch on one variable": "in one group already",
    "enumeration of many": "too many to enumerate",
    "y of another length": "must be a list of 60 integers",
}


def test_coefficients_that_are_no_problem_yet_are_refused_in_words(proven):
    with pytest.raises(ValueError, match="A must be a Problem or a square matrix of real numbers, got dict"):
        check_proof({("a", "b"): 1.0}, proven[1])


def test_100_forgeries_are_refused(proven):
    A, content = proven
    kinds = set()
    for name, forged in Forger(A, content).forgeries(100, np.random.default_rng(0)):
        verdict = check_proof(A, forged)
        assert not verdict.accepted, name
        assert verdict.value is None
        assert REASONS.get(name, "") in verdict.reason, name
        kinds.add(name)
    assert len(kinds) > 30
    assert set(REASONS) <= kinds
    assert check_proof(A, content).accepted  # the original is untouched


def test_extreme_integers_are_refused_in_words(proven):
    """2^8191 · 2^8192 has more digits than Python prints."""
    A, content = proven
    index = next(k for k, node in enumerate(content["nodes"]) if "dual" in node)
    for sign in (-1, 1):
        for shift in (-8192, 8192, 0):
            forged = copy.deepcopy(content)
            dual = forged["nodes"][index]["dual"]
            dual["y"][0], dual["shift"] = sign * 2**8191, shift
            assert check_proof(A, forged).reason.startswith(f"node {index}: only ")
    for key in ("value", "bound", "version", "n"):
        assert not check_proof(A, content | {key: 2**20_000}).accepted


def test_long_cuts_are_refused(proven):
    A, content = proven
    forged = copy.deepcopy(content)
    dual = next(node["dual"] for node in forged["nodes"] if "dual" in node)
    dual["cuts"].append([1, *range(1, 18)])
    assert "more than 15 entries" in check_proof(A, forged).reason


def test_cuts_in_pieces_are_the_same(proven, monkeypatch):
    A, content = proven
    monkeypatch.setattr(check, "CUTS_AT_ONCE", 7)
    assert check_proof(A, content).accepted


def content_of(A: np.ndarray, x: list[int], bound: int, nodes: list[dict]) -> dict:
    N, exponent = exact_matrix(A)
    head = {"format": check.FORMAT, "version": 1, "problem": check.digest(N, exponent), "n": len(N)}
    value = int(np.array(x, dtype=object) @ N @ np.array(x, dtype=object))
    return head | {"exponent": exponent, "value": value, "bound": bound, "x": x, "nodes": nodes}


def test_false_claims_that_one_missing_check_would_accept():
    """x₀x₁ is smallest for opposite signs: 2 is not the optimum, and each of these arguments for it has one gap."""
    A = np.array([[0, 1], [1, 0]])
    even = {"dual": {"shift": 0, "y": [-1, -1], "cuts": [[1, 1, 2]]}}
    assert "even" in check_proof(A, content_of(A, [1, 1], 2, [even])).reason
    negative = {"dual": {"shift": 0, "y": [0, 3], "cuts": [[-1, 1], [1, 2]]}}
    assert "negative" in check_proof(A, content_of(A, [1, 1], 2, [negative])).reason
    half = [{"branch": [1, 2]}, {"enumerate": True}]
    assert "missing" in check_proof(A, content_of(A, [1, 1], 2, half)).reason
    wrong = [*half, {"enumerate": True}]
    assert "node 2: only -2 is proven" in check_proof(A, content_of(A, [1, 1], 2, wrong)).reason
    assert check_proof(A, content_of(A, [1, -1], -2, wrong)).accepted
    assert check_proof(A, content_of(A, [1, 1], -2, wrong)).value == 2  # a valid bound, below the value


def test_the_proof_of_another_problem_is_refused(proven):
    A, content = proven
    other = A.copy()
    other[0, 1] = other[1, 0] = other[0, 1] + 1.0
    assert "digest" in check_proof(other, content).reason
    assert "n is" in check_proof(A[:-1, :-1], content).reason
    assert "exponent is 0, but must be 1" in check_proof(2.0 * A, content).reason


@pytest.mark.parametrize("broken", [None, 1, "x", [], {}, {"format": []}, {"format": check.FORMAT}])
def test_other_content_is_refused(proven, broken):
    assert not check_proof(proven[0], broken).accepted


@pytest.mark.parametrize(
    "value", [None, True, 1.0, "1", [], {}, float("nan"), 2**9000, [None], [1.5], {"y": 1}], ids=lambda v: repr(v)[:9]
)
def test_any_field_of_another_type_is_refused(proven, value):
    A, content = proven
    leaf = next(k for k, node in enumerate(content["nodes"]) if "dual" in node)
    inner = next(k for k, node in enumerate(content["nodes"]) if "branch" in node)
    places = [(key,) for key in content] + [("nodes", leaf, "dual")]
    places += [("nodes", leaf, "dual", key) for key in ("shift", "y", "cuts")] + [("nodes", inner, "branch")]
    places += [("nodes", leaf), ("nodes", leaf, "dual", "cuts", 0), ("nodes", leaf, "dual", "y", 0), ("x", 0)]
    for place in places:
        forged = copy.deepcopy(content)
        part = forged
        for key in place[:-1]:
            part = part[key]
        if type(part[place[-1]]) is type(value) and part[place[-1]] == value:
            continue
        part[place[-1]] = value
        if value == [] and place[-1] == "cuts":
            continue  # a leaf without cuts is well-formed; whether it proves anything is another test
        verdict = check_proof(A, forged)
        assert not verdict.accepted, place


# ---- what is accepted is true ----


def random_dual(rng: np.random.Generator, n: int, shift: int) -> Dual:
    scale = 2.0 ** max(shift, 0)
    y = [int(v) for v in np.rint(scale * rng.uniform(-40, 5, n))]
    cuts, gamma = [], []
    for _ in range(int(rng.integers(0, 8))):
        size = int(rng.choice([1, 3, 5]))
        chosen = rng.choice(n, size, replace=False) + 1
        cuts.append([int(v) for v in chosen * rng.choice([-1, 1], size)])
        gamma.append(int(rng.uniform(0, 10) * scale))
    return Dual(shift, y, cuts, gamma)


@pytest.mark.parametrize("seed", range(40))
def test_any_dual_point_gives_a_valid_bound(seed):
    """Random duals and random groups: no x of the node has a value below the bound, exactly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 10))
    A = symmetric(rng.integers(-9, 10, (n, n)))
    N, _ = exact_matrix(A)
    groups = Groups.all_apart(n)
    for _ in range(int(rng.integers(0, 4))):
        i, j = rng.choice(n, 2, replace=False)
        if groups.group[i] != groups.group[j]:
            groups = groups.joined(int(i), int(j), int(rng.choice([-1, 1])))
    m = int(groups.group.max()) + 1
    lowest = min(int(x @ N @ x) for x in (groups.sign * z.astype(int)[groups.group] for z in all_signs(m)))
    for shift in (0, 3, 20, 70, -2):
        assert leaf_bound(N, groups, random_dual(rng, n, shift)) <= lowest


def test_the_bound_of_a_leaf_is_nearly_the_dual_value():
    """The exact arithmetic costs little: 1e-9 of the size of the problem."""
    A = random_symmetric(20, 0)
    N, exponent = exact_matrix(A)
    least = np.linalg.eigvalsh(A)[0]
    y = [math.floor(least * 2.0**45)] * 20
    proven = leaf_bound(N, Groups.all_apart(20), Dual(45 + exponent, y, [], [])) * Fraction(2) ** exponent
    assert 0.0 <= 20 * least - float(proven) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_groups_contract_exactly(seed):
    rng = np.random.default_rng(seed)
    groups = Groups.all_apart(6).joined(1, 4, -1).joined(0, 4, 1).joined(5, 2, -1)
    assert int(groups.group.max()) == 2
    N = symmetric(rng.integers(-9, 10, (6, 6)))
    for z in all_signs(3).astype(int):
        x = groups.sign * z[groups.group]
        assert (x[1], x[0], x[5]) == (-x[4], x[4], -x[2])
        for M in (N, N.astype(object) * 10**30):
            assert z @ groups.contracted(M) @ z == x @ M @ x


@pytest.mark.parametrize("seed", range(20))
def test_eigenvalue_bounds_are_below_the_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    T = symmetric(rng.integers(-(10**6), 10**6, (m, m)))
    if seed % 2:
        B = rng.integers(-100, 100, (m, max(1, m - 1)))
        T = B @ B.T  # singular, often
    least = np.linalg.eigvalsh(T.astype(float))[0]
    size = np.abs(T).max() + 1.0
    for factor in (1, 2**200):
        found = check._eigenvalue_bound(T.astype(object) * factor) / factor
        assert float(found) <= least + 1e-9 * size
    if least >= -1e-9 * size:
        assert float(found) >= -1e-6 * size


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_factor_costs_only_the_bound(seed, monkeypatch):
    """No floating point result is trusted: with any factor at all, no eigenvalue is below the bound."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(np.linalg, "cholesky", lambda F: np.tril(rng.uniform(-0.1, 0.1, F.shape)))
    for T in (-np.ones((9, 9), int), symmetric(rng.integers(-50, 50, (9, 9)))):
        found = float(check._eigenvalue_bound(T.astype(object)))
        assert found <= np.linalg.eigvalsh(T.astype(float))[0] + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_exact_matrix_is_exact(seed):
    rng = np.random.default_rng(seed)
    A = symmetric(rng.standard_normal((5, 5)) * 10.0 ** rng.uniform(-30, 30, (5, 5)) * (rng.random((5, 5)) < 0.8))
    N, exponent = exact_matrix(A)
    for given, whole in zip(A.flat, N.flat, strict=True):
        assert Fraction(given) == whole * Fraction(2) ** exponent
    assert any(int(v) % 2 for v in N.flat)
    assert check.digest(N, exponent) == check.digest(*exact_matrix(sp.csr_array(A)))


def test_lattice_of_the_exact_matrix():
    N = symmetric(6 * np.random.default_rng(0).integers(-3, 4, (7, 7)))
    N[0, 0] += 1
    lattice = Lattice.of(N.astype(object))
    values = {int(x @ N @ x) for x in all_signs(7).astype(int)}
    assert lattice.step % 24 == 0
    assert all((value - lattice.one) % lattice.step == 0 for value in values)
    assert lattice.ceiling(Fraction(brute_force(N.astype(float))) - Fraction(1, 3)) == min(values)


@pytest.mark.parametrize(
    "A", [np.ones((2, 3)), np.zeros((0, 0)), [[0.0, 1.0], [2.0, 0.0]], [[np.nan]], [["a"]], np.eye(2) * 1j, 1.0]
)
def test_matrices_that_are_none_are_an_error(A, proven):
    with pytest.raises(ValueError, match="A must be"):
        check_proof(A, proven[1])


# ---- files ----


@pytest.mark.parametrize("name", ["proof.json", "proof.json.gz"])
def test_round_trip_through_a_file(name, tmp_path):
    A = symmetric(np.random.default_rng(0).integers(-5, 6, (20, 20)).astype(float))
    proof = bqp.solve(A, "branch_and_bound", random_state=0).details["proof"]
    proof.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert read_proof(tmp_path / name) == proof.content
    assert check_proof(A, read_proof(tmp_path / name)).accepted
    assert check_proof(A, proof).accepted


@pytest.mark.parametrize("zipped", [False, True])
def test_every_truncated_file_is_an_error(proven, zipped, tmp_path):
    data = json.dumps(proven[1]).encode()
    data = gzip.compress(data) if zipped else data
    for length in [*range(20), *np.linspace(20, len(data) - 1, 30).astype(int)]:
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ValueError, match="cut: "):
            read_proof(tmp_path / "cut")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"\x1f\x8b", b"\x00" * 10]
)
def test_hostile_files_are_an_error(data, tmp_path):
    (tmp_path / "proof").write_bytes(data)
    with pytest.raises(ValueError, match="proof: "):
        read_proof(tmp_path / "proof")


def test_a_file_that_unpacks_to_too_much_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "LARGEST_FILE", 10_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * 1_000_000))
    with pytest.raises(ValueError, match="no proof is that large"):
        read_proof(tmp_path / "bomb.gz")


def test_many_nodes_need_no_recursion():
    """A chain of 60 branchings, one below the other, and a bound that is easy."""
    n = 66
    A = np.diag(np.ones(n - 1), 1)
    A = A + A.T
    easy = {"shift": 0, "y": [-3] * n, "cuts": []}
    nodes = [*({"branch": [1, depth + 2]} for depth in range(60)), *({"dual": easy} for _ in range(61))]
    verdict = check_proof(A, content_of(A, [(-1) ** k for k in range(n)], -3 * n - 4, nodes))
    assert verdict.accepted, verdict.reason
    assert verdict.n_leaves == 61
    assert verdict.bound < verdict.value


# ---- independence ----


def test_the_verifier_imports_nothing_of_the_package():
    source = Path(check.__file__).read_text(encoding="utf-8")
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    standard = {m for m in modules if m.partition(".")[0] in sys.stdlib_module_names}
    assert modules - standard == {"numpy", "numpy.typing"}


def test_the_verifier_runs_as_a_file_of_its_own(proven, tmp_path):
    A, content = proven
    (tmp_path / "checker.py").write_text(Path(check.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "proof.json").write_text(json.dumps(content))
    np.save(tmp_path / "A.npy", A)
    program = (
        "import numpy, checker; "
        "print(checker.check_proof(numpy.load('A.npy'), checker.read_proof('proof.json')).accepted)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_problem_is_proven_for_its_own_coefficients():
    """h = 2⁵³ / 2 + 0.1 rounds in A; the proof and its check count with the coefficients."""
    problem = bqp.qubo_problem({("a", "b"): 2.0**53, ("b", "b"): 0.1, ("a", "a"): -0.3})
    answer = bqp.solve_problem(problem, method="branch_and_bound", random_state=0)
    proof = answer.solution.details["proof"]
    verdict = check_proof(problem, proof)
    assert verdict.accepted, verdict.reason
    assert problem.exact_objective(verdict.value) == problem.exact_objective(verdict.bound) == Fraction(-0.3)
    assert check_proof(problem.operator, proof) == verdict
    assert not check_proof(problem.operator.toarray(), proof).accepted  # the rounded matrix is another problem


def test_open_nodes_take_little_memory():
    """A path branches at most n − 1 times, so at most n nodes wait."""
    n = 300
    A = np.ones((n, n)) - np.eye(n)
    N, exponent = exact_matrix(A)
    deep = [{"branch": [1, k]} for k in range(2, n)]
    head = {"format": "hashlearn bqp proof", "version": 1, "problem": check.digest(N, exponent), "n": n}
    content = head | {"exponent": exponent, "value": n * n - n, "bound": 0, "x": [1] * n, "nodes": deep}
    tracemalloc.start()
    verdict = check_proof(A, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.reason == "299 nodes are missing at the end"
    assert peak < 50e6


def test_files_that_unpack_to_very_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "LARGEST_CONTENT", 10**6)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b"[" + b"[]," * 20_000 + b"[]]"))
    with pytest.raises(ValueError, match="no proof is that large"):
        read_proof(bomb)
