"""``hashlearn fit FEATURES -o MODEL``: learn a hasher from files and write it as one safe file.

`samples`, `rows_like`, `notices` and `described` are shared with other commands.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, one_line, refusals
from hashlearn.cli.options import require_place
from hashlearn.cli.text_tables import pairs
from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import percent, seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hashlearn.files import RowSource
    from hashlearn.hashers.ranking import RankingReport

METHOD_HELP = (
    "Hasher: NAMES.  [default: two_step with --labels, ranking without; the other if only it has what options set]"
)
SET_HELP = "Any other parameter of the method, such as n_sweeps=5 or n_steps=1000; may be repeated."


@click.command("fit", short_help="Learn codes from a file of features; writes a model.")
@options.features_argument
@options.rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels)")
@options.rows_option("--queries", "Examples of what will be searched for, if they differ from the rows (ranking)")
@options.output_option("Where the model goes.")
@click.option("--bits", "n_bits", type=int, help="Code length.  [default: the method's; ranking 64, others 32]")
@options.named_option("--method", "methods", METHOD_HELP)
@options.named_option("--encoder", "encoders", "What ranking trains: NAMES.  [default: the method's]")
@options.named_option("--solver", "solvers", "How two_step solves each bit: NAMES.  [default: the method's]")
@options.named_option("--target", "targets", "What codes preserve: NAMES.  [default: the method's]")
@options.named_option("--hash-function", "hash functions", "How bits are predicted: NAMES.  [default: the method's]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help=SET_HELP)
@options.seed_option
@options.seconds_option("--time-limit", "For training, or for the inference of codes; what comes after is not limited.")
@click.option("--notes", default="", show_default=False, help="Kept in the model file.")
@options.answers
def fit_command(
    features: str,
    labels: str | None,
    queries: str | None,
    output: Path,
    n_bits: int | None,
    method: str | None,
    settings: tuple[str, ...],
    seed: int,
    notes: str,
    bar: ProgressBar,
    **named: Any,
) -> tuple[dict[str, Any], str]:
    """Learn a hasher from FEATURES, a file of rows, and write it to a model file.

    Without labels codes keep the nearest rows (ranking), with labels they keep classes together (two_step). To group
    similar rows without labels take --method two_step. The model file takes its place whole or not at all.
    """
    named = {name: value for name, value in named.items() if value is not None}
    parameters = _given(settings)
    why = None
    if method is None:
        method, why = _default_method(labels, queries, [*named, *parameters])
    hasher = _configured(method, n_bits, named, parameters, seed)
    if queries is not None and method != "ranking":
        raise InputError(f"--queries: method {method!r} does not learn from queries; --method ranking does")
    require_place(output, queries)
    with samples(features, labels, output, bar) as given:
        with refusals():
            rows = given.source.read()
        asked = {} if queries is None else {"queries": rows_like(queries, given.source)}
        bar.begin("learning")
        if "progress" in hasher.get_params():
            hasher.set_params(progress=bar)
        began = time.perf_counter()
        with refusals():
            hasher.fit(rows, given.y, **asked)
        spent = time.perf_counter() - began
        if "progress" in hasher.get_params():
            hasher.set_params(progress=None)
        report = given.save(hasher, output, notes)
    remarks = notices(given.heard)
    if labels is not None and not hasher._learns_from_labels:
        remarks.append(f"method {method!r} learns without labels: --labels was not used")
    if getattr(getattr(hasher, "inference_report_", None), "out_of_time", False):
        remarks.append("the time limit shortened the inference of codes; some bits are less well solved")
    report |= {"method": method, "why": why, "seed": seed, "seconds": spent, "notes": remarks, **_what_ran(hasher)}
    model, learned = described(report)
    taken = f"{method}, {hasher.n_bits} bits" + (f"; chosen because {why}" if why else "")
    ran = [(name.replace("_", " "), words) for name, words in _what_ran(hasher).items()]
    lines = [model, ("method", taken), *ran, learned]
    if method == "ranking":
        report["ranking"] = _ranking(hasher.ranking_report_)
        lines += _ranking_lines(hasher.ranking_report_)
    return report, pairs([*lines, ("seconds", seconds(spent))])


def _what_ran(hasher: Any) -> dict[str, str]:
    """What solver and hash function, "auto" for example, became."""
    if not hasattr(hasher, "inference_report_"):
        return {}
    return {"solver": hasher.inference_report_.method, "hash_function": hasher.hash_functions_.description}


def _default_method(labels: str | None, queries: str | None, asked: Sequence[str]) -> tuple[str, str]:
    """The method to take if none is named, and why. ``asked`` are the parameters that options set.

    >>> _default_method(None, None, [])
    ('ranking', 'there are no labels')
    >>> _default_method(None, None, ["solver", "time_limit"])
    ('two_step', 'it has solver')
    """
    from hashlearn.hashers import HASHERS

    if queries is not None:
        return "ranking", "it learns from queries"
    first, other = ("ranking", "two_step") if labels is None else ("two_step", "ranking")
    missing = sorted({*asked} - {*HASHERS[first]._get_param_names()})
    if missing and {*asked} <= {*HASHERS[other]._get_param_names()}:
        return other, f"it has {', '.join(missing)}"
    return first, f"there are {'no ' if labels is None else ''}labels"


def _configured(method: str, n_bits: int | None, named: dict[str, Any], given: dict[str, Any], seed: int) -> Any:
    """The unfitted hasher, with the parameters that options of the same name and --set give."""
    from hashlearn.hashers import HASHERS

    with refusals():
        require_choice(method, "--method", HASHERS)
    kind = HASHERS[method]
    known = kind._get_param_names()
    for name in (*named, *given):
        if name not in known:
            option = "--set" if name in given else f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: method {method!r} has no {name}; it has {', '.join(known)}")
    seeded = {"random_state": seed} if "random_state" in known else {}
    length = {} if n_bits is None else {"n_bits": n_bits}
    return kind(**{**length, **seeded, **named, **given})


def _given(settings: tuple[str, ...]) -> dict[str, Any]:
    """The values of --set: JSON if they can be read as such, else text."""
    found = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise InputError(f"--set: must be NAME=VALUE, got {setting!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def rows_like(address: str, source: RowSource) -> Any:
    """Rows of queries, in memory, with the columns of the source."""
    from hashlearn.files import open_rows
    from hashlearn.files.encoding import require_same_names

    with refusals("--queries"):
        queries = open_rows(address, names=source.names)
        if queries.n_features != source.n_features:
            raise ValueError(
                f"{address}: has {queries.n_features} feature(s) a row, {source.name} has {source.n_features}"
            )
        require_same_names(queries, source)
        return queries.read()


def _ranking(report: RankingReport) -> dict[str, Any]:
    """What training gained, for JSON."""
    names = ("encoder", "n_steps", "ending", "n_held_out", "k")
    recalls = {"before": report.before, "after": report.after}
    return {name: getattr(report, name) for name in names} | {
        name: None if check is None else check._asdict() for name, check in recalls.items()
    }


def _ranking_lines(report: RankingReport) -> list[tuple[str, str]]:
    """What training gained, in words."""
    lines = [("training", str(report).partition("\n")[0])]
    before, after = report.before, report.after
    if before and after:
        hamming = f"Hamming {percent(before.hamming, 3)} → {percent(after.hamming, 3)}"
        asymmetric = f"asymmetric {percent(before.asymmetric, 3)} → {percent(after.asymmetric, 3)}"
        lines.append((f"recall@{report.k}", f"{hamming}, {asymmetric}, of {report.n_held_out} held-out rows"))
    return lines


class Samples(NamedTuple):
    """What to learn from, and what is shown and heard meanwhile."""

    source: RowSource  # not yet in memory
    y: NDArray[Any] | None
    bar: ProgressBar
    heard: list[warnings.WarningMessage]

    def save(self, hasher: Any, output: Path, notes: str = "") -> dict[str, Any]:
        """Write the model, with the names of its columns if the file has them. Returns the first part of the report."""
        import numpy as np

        if self.source.names is not None:
            hasher.feature_names_in_ = np.array(self.source.names, dtype=object)
        self.bar.begin("writing")
        with refusals(f"--output {output}"):
            hasher.save(output, notes=notes)
        return {
            "model": str(output),
            "n_bits": hasher.n_bits,
            "n_samples": self.source.n_rows,
            "n_features": self.source.n_features,
            "labels": self.y is not None,
            "bytes": output.stat().st_size,
        }


@contextmanager
def samples(features: str, labels: str | None, output: Path, bar: ProgressBar) -> Iterator[Samples]:
    """Open the files, and record warnings while the block runs."""
    from hashlearn.files import open_rows

    require_place(output, features, labels)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        bar.begin("reading")
        with refusals():
            source = open_rows(features)
        yield Samples(source, options.labels_for(labels, source), bar, heard)


def notices(heard: Iterable[warnings.WarningMessage]) -> list[str]:
    """Each warning once, as one line."""
    return list(dict.fromkeys(one_line(warning.message) for warning in heard))


def described(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The model and its samples, in words.

    >>> described({"model": "m", "bytes": 4096, "n_samples": 5000, "n_features": 784, "labels": False})
    [('model', 'm  (4,096 bytes)'), ('learned from', '5,000 rows of 784 features, without labels')]
    """
    rows = f"{report['n_samples']:,} rows of {report['n_features']:,} features"
    model = f"{report['model']}  ({report['bytes']:,} bytes)"
    return [("model", model), ("learned from", f"{rows}, {'with' if report['labels'] else 'without'} labels")]
