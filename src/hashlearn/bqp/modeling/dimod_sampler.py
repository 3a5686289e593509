"""`DimodSampler`: the solvers behind the interface of D-Wave's dimod, so that programs written for it run unchanged.

dimod is imported when a sampler is made, which is then an instance of ``dimod.Sampler`` too and takes the rest of its
interface from there: ``sample_qubo``, ``sample_ising`` and the methods of a context.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.modeling.answers import Answer, solve_problem
from hashlearn.bqp.modeling.problem_readers import model_problem
from hashlearn.core.checks import whole_number
from hashlearn.core.packages import require

PARAMETERS = ("num_reads", "time_limit", "seed", "method", "max_iter", "fixed")


class DimodSampler:
    """A ``dimod.Sampler`` whose sample sets say how good they are: ``info`` holds a proven bound and the gap.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("dimod")
    >>> from hashlearn import bqp
    >>> sampler = bqp.DimodSampler()
    >>> samples = sampler.sample_ising({"a": 0.5}, {("a", "b"): 1.0}, method="exact")
    >>> float(samples.first.energy), samples.info["bound"], samples.info["status"]
    (-1.5, -1.5, 'optimal')
    """

    _dimod: Any  # the package

    def __new__(cls) -> Any:
        """An instance of this class and of ``dimod.Sampler``."""
        dimod = require("dimod", "optimization", "DimodSampler")
        return object.__new__(type(dimod.Sampler)(cls.__name__, (cls, dimod.Sampler), {"_dimod": dimod}))

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The keyword arguments of `sample`, as dimod lists them."""
        return {name: [] for name in PARAMETERS}

    @property
    def properties(self) -> dict[str, Any]:
        """What the sampler is."""
        return {"description": "hashlearn.bqp: binary quadratic models with proven bounds"}

    def sample(
        self,
        bqm: Any,
        *,
        num_reads: int = 1,
        time_limit: float | None = None,
        seed: int | None = None,
        **parameters: Any,
    ) -> Any:
        """Minimize the energy of a ``dimod.BinaryQuadraticModel``.

        Parameters
        ----------
        bqm : the model, of binary variables or of spins
        num_reads : how many solves, from different seeds; each gives one sample. Without a time limit, "auto" uses
            branch and bound in the first one only
        time_limit : seconds for all of them together
        seed : makes the samples reproducible
        **parameters : ``method``, ``max_iter`` and ``fixed``, as for `qubo`; others are ignored with dimod's warning

        Returns
        -------
        dimod.SampleSet
            Energies are those of the model. ``info`` holds ``bound`` (no energy is smaller; None if nothing was
            proven), ``gap`` and ``status`` of the best sample, ``seconds`` of all solves and ``method``.
        """
        options = self.remove_unknown_kwargs(**parameters)  # type: ignore[attr-defined]
        model = self._dimod.as_bqm(bqm)
        problem = model_problem(model)
        reads = whole_number(num_reads, "num_reads", least=1)
        if time_limit is not None:
            options["time_limit"] = time_limit / reads
        answers: list[Answer] = []
        for child in np.random.SeedSequence(seed).spawn(reads):
            passed = options | {"random_state": child}
            if answers and options.get("method", Auto.name) == Auto.name:
                passed["method"] = Auto(max_nodes=0)  # one proof is enough
            answers.append(solve_problem(problem, **passed))
        best = min(answers, key=lambda answer: (answer.energy, answer.gap))  # with the best bound for this energy
        info = {
            "bound": best.bound if math.isfinite(best.bound) else None,
            "gap": best.gap if math.isfinite(best.gap) else None,
            "status": best.status.value,
            "seconds": sum(answer.solution.seconds for answer in answers),
            "method": best.solution.method,
        }
        samples, energies = [answer.values for answer in answers], [answer.energy for answer in answers]
        return self._dimod.SampleSet.from_samples(samples, vartype=model.vartype, energy=energies, info=info)
