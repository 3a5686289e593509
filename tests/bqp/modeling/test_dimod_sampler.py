"""`DimodSampler` passes dimod's own tests of samplers; energies, bounds and labels are those of the model."""

from __future__ import annotations

import subprocess
import sys
import unittest

import numpy as np
import pytest

from hashlearn import bqp

dimod = pytest.importorskip("dimod")
pytest.importorskip("dimod.testing")


@dimod.testing.load_sampler_bqm_tests(bqp.DimodSampler)
class TestOfDimod(unittest.TestCase):
    def test_interface(self) -> None:
        sampler = bqp.DimodSampler()
        dimod.testing.assert_sampler_api(sampler)
        assert isinstance(sampler, dimod.Sampler)
        with sampler as same:
            assert same is sampler


def model(vartype: str = "SPIN", n: int = 12, seed: int = 0) -> dimod.BinaryQuadraticModel:
    rng = np.random.default_rng(seed)
    linear = {f"v{k}": float(rng.integers(-3, 4)) for k in range(n)}
    quadratic = {(f"v{i}", f"v{j}"): float(rng.integers(-3, 4)) for i in range(n) for j in range(i)}
    return dimod.BinaryQuadraticModel(linear, quadratic, 1.5, vartype)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_samples_have_the_energies_of_the_model(vartype: str) -> None:
    bqm = model(vartype)
    samples = bqp.DimodSampler().sample(bqm, num_reads=3, seed=1, time_limit=30.0, method="local_search")
    dimod.testing.assert_sampleset_energies(samples, bqm)
    assert len(samples) == 3
    assert samples.vartype is bqm.vartype
    best = dimod.ExactSolver().sample(bqm).first.energy
    assert samples.info["bound"] is None or samples.info["bound"] <= best <= samples.first.energy
    proven = bqp.DimodSampler().sample(bqm, method="exact")
    assert proven.first.energy == proven.info["bound"] == best
    assert (proven.info["gap"], proven.info["status"], proven.info["method"]) == (0.0, "optimal", "exact")


def test_seed_and_fixed() -> None:
    bqm, sampler = model("BINARY"), bqp.DimodSampler()
    first, second = (sampler.sample(bqm, seed=5, method="local_search") for _ in range(2))
    np.testing.assert_array_equal(first.record.sample, second.record.sample)
    chosen = sampler.sample(bqm, fixed={"v3": 1}, method="exact").first.sample
    assert chosen["v3"] == 1


def test_only_the_first_read_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[int] = []
    search = bqp.BranchAndBound.solve
    monkeypatch.setattr(bqp.BranchAndBound, "solve", lambda *given: trees.append(1) or search(*given))
    samples = bqp.DimodSampler().sample(model(n=24), num_reads=3, seed=0)
    assert (len(samples), len(trees), samples.info["status"]) == (3, 1, "optimal")


def test_unknown_parameters_warn_as_dimod_wants() -> None:
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="annealing_time"):
        bqp.DimodSampler().sample(model(n=3), method="exact", annealing_time=20)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="num_reads must be an integer of at least 1, got 0"):
        bqp.DimodSampler().sample(model(), num_reads=0)
    with pytest.raises(ValueError, match="time_limit must be a positive number"):
        bqp.DimodSampler().sample(model(), time_limit=0)


def test_composites_of_dimod_take_it() -> None:
    tracked = dimod.TrackingComposite(bqp.DimodSampler())
    assert tracked.sample_qubo({("a", "a"): -1.0}, method="exact").first.sample == {"a": 1}


def test_importing_bqp_imports_neither_dimod_nor_networkx() -> None:
    code = "import sys; from hashlearn import bqp; bqp.DimodSampler, bqp.max_cut([(0, 1)], method='exact')\n"
    code += "print(*({'dimod', 'networkx'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""
