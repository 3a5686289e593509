"""Try an installed hashlearn: ``make smoke`` runs this with the wheel in a clean environment, without pytest.

It imports every public name, learns codes, saves, loads and searches, runs the command, and runs the Python examples of
README.md as they are printed. It ends with an error at the first thing that fails.
"""

from __future__ import annotations

import doctest
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]


def check_import() -> None:
    """Every public name can be imported, and the version is that of the installed package."""
    import hashlearn

    for name in hashlearn.__all__:
        getattr(hashlearn, name)
    check(hashlearn.__version__ == metadata.version("hashlearn"), "the version differs from the installed package's")


def check_codes(folder: Path) -> None:
    """Learn, encode, save, load and search."""
    from sklearn.datasets import load_digits

    from hashlearn import TwoStepHasher, load
    from hashlearn.search import HammingIndex

    X, y = load_digits(return_X_y=True)
    hasher = TwoStepHasher(n_bits=16, random_state=0).fit(X[:500], y[:500])
    codes = hasher.encode(X)
    hasher.save(folder / "digits.hashlearn")
    check((load(folder / "digits.hashlearn").encode(X) == codes).all(), "a loaded model gives other codes")
    index = HammingIndex(n_bits=16)
    index.add(codes[:500])
    nearest = index.search(codes[500:], k=1).indices[:, 0]
    found = float((y[nearest] == y[500:]).mean())
    check(found > 0.8, f"only {found:.0%} of the nearest codes have the class of the query")


def check_solver() -> None:
    """Solve a small problem and prove a bound."""
    import numpy as np

    from hashlearn import bqp

    A = np.random.default_rng(0).normal(size=(12, 12))
    A = A + A.T
    exact = bqp.solve(A, method="exact").value
    bound = bqp.solve(A, method="sdr", random_state=0).bound
    check(bound <= exact + 1e-9, f"the bound {bound} is above the optimum {exact}")


def check_command() -> None:
    """The command of this environment answers with its version."""
    command = Path(sys.executable).with_name("hashlearn")
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    version = metadata.version("hashlearn")
    check(answer.strip().endswith(version), f"hashlearn --version printed {answer!r}, the package is {version}")


def check_readme() -> None:
    """The Python examples of README.md give what they print."""
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    check(result.attempted > 0, "README.md has no Python example")
    check(result.failed == 0, f"{result.failed} examples of README.md failed")


def check(holds: object, message: str) -> None:
    """Like ``assert``, and also under ``python -O``."""
    if not holds:
        raise SystemExit(f"smoke: {message}")


def main() -> None:
    """Run all checks and say how long each took."""
    import hashlearn

    sys.stdout.write(f"smoke: Python {sys.version.split()[0]}, hashlearn {hashlearn.__version__}\n")
    with tempfile.TemporaryDirectory() as folder:
        steps = {
            "import": check_import,
            "fit, encode, save, load, search": lambda: check_codes(Path(folder)),
            "solve": check_solver,
            "hashlearn --version": check_command,
            "examples of README.md": check_readme,
        }
        for name, step in steps.items():
            start = perf_counter()
            step()
            sys.stdout.write(f"smoke: {name}: {perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
