"""Under ``python -O`` asserts are gone; what hashers, model files and commands refuse is refused all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import sys, numpy as np
from click.testing import CliRunner
from hashlearn import TwoStepHasher, bits, hashers, load, metrics, persistence
from hashlearn.cli import main
assert False, "asserts are on"
X = np.random.default_rng(0).standard_normal((60, 8))
y = np.arange(60) % 3
lsh = hashers.LSH(12, random_state=0).fit(X)
lsh.save("model")
whole = open("model", "rb").read()
np.save("nan.npy", np.where(X > 2, np.nan, X))

def cut():
    open("cut", "wb").write(whole[:-1])
    load("cut")

codes = lsh.encode(X)
for call in (
    lambda: TwoStepHasher(4).fit(np.where(X > 2, np.nan, X), y),
    lambda: TwoStepHasher(4).fit(X, np.zeros(60)),
    lambda: TwoStepHasher(4, target="labels").fit(X),
    lambda: TwoStepHasher(0).fit(X, y),
    lambda: lsh.encode(X[:, :7]),
    lambda: lsh.encode(X[0]),
    lambda: metrics.mean_average_precision(codes, codes[:, :1], y, y),
    lambda: metrics.mean_average_precision(codes, codes, y[:5], y),
    lambda: bits.pack_signs(np.zeros((2, 8))),
    cut,
):
    try:
        call()
    except (TypeError, ValueError) as error:
        continue
    print("accepted", call)
for arguments in (["fit", "nan.npy", "-o", "new"], ["encode", "cut", "nan.npy", "-o", "codes.npy"]):
    print(CliRunner().invoke(main, arguments).exit_code)
"""


def test_everything_is_refused_without_asserts(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-O", "-c", CODE], capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert (done.stdout.split(), done.returncode) == (["2", "2"], 0), done.stderr
    assert "new" not in os.listdir(tmp_path)
