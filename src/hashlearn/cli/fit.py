"""``hashlearn fit FEATURES -o MODEL``: learn a hasher from files and write it as one safe file.

`Samples` is shared with tune.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import percent

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
) -> options.Answer:
    """Learn a hasher from FEATURES, a file of rows, and write it to a model file.

    Without labels codes keep the nearest rows (ranking), with labels they keep classes together (two_step). To group
    similar rows without labels take --method two_step. The model file takes its place whole or not at all.
    """
    named = {name: value for name, value in named.items() if value is not None}
    parameters = _parameters(settings)
    why = None
    if method is None:
        method, why = _default_method(labels, queries, [*named, *parameters])
    hasher = _configured(method, n_bits, named, parameters, seed)
    if queries is not None and method != "ranking":
        raise InputError(f"--queries: method {method!r} does not learn from queries; --method ranking does")
    options.require_place(output, queries)
    samples = Samples.read(features, labels, output, bar)
    extra = {} if queries is None else {"queries": options.rows_like(queries, samples.source)}
    reports_progress = "progress" in hasher.get_params()
    with refusals():
        rows = samples.source.read()
        bar.begin("learning")
        if reports_progress:
            hasher.set_params(progress=bar)
        hasher.fit(rows, samples.y, **extra)
        if reports_progress:
            hasher.set_params(progress=None)
    report, learned = samples.save(hasher, output, bar, notes)
    remarks = []
    if labels is not None and not hasher._learns_from_labels:
        remarks.append(f"method {method!r} learns without labels: --labels was not used")
    inference = getattr(hasher, "inference_report_", None)
    if getattr(inference, "out_of_time", False):
        remarks.append("the time limit shortened the inference of codes; some bits are less well solved")
    # What solver and hash function, "auto" for example, became.
    ran = (inference and {"solver": inference.method, "hash_function": hasher.hash_functions_.description}) or {}
    report |= {"method": method, "why": why, "seed": seed, "notes": remarks, **ran}
    reason = f"; chosen because {why}" if why else ""
    lines = [learned[0], ("method", f"{method}, {hasher.n_bits} bits{reason}")]
    lines += [*((name.replace("_", " "), words) for name, words in ran.items()), learned[1]]
    if method == "ranking":
        report["ranking"] = _ranking(hasher.ranking_report_)
        lines += _ranking_lines(hasher.ranking_report_)
    return report, lines


def _default_method(labels: str | None, queries: str | None, parameters: Sequence[str]) -> tuple[str, str]:
    """The method to take if none is named, and why. ``parameters`` are those that options set.

    >>> _default_method(None, None, [])
    ('ranking', 'there are no labels')
    >>> _default_method(None, None, ["solver", "time_limit"])
    ('two_step', 'it has solver')
    """
    from hashlearn.hashers import HASHERS

    if queries is not None:
        return "ranking", "it learns from queries"
    first, other = ("ranking", "two_step") if labels is None else ("two_step", "ranking")
    missing = sorted({*parameters} - {*HASHERS[first]._get_param_names()})
    if missing and {*parameters} <= {*HASHERS[other]._get_param_names()}:
        return other, f"it has {', '.join(missing)}"
    return first, f"there are {'no ' if labels is None else ''}labels"


def _configured(method: str, n_bits: int | None, named: dict[str, Any], parameters: dict[str, Any], seed: int) -> Any:
    """The unfitted hasher, with the parameters that options of the same name and --set give."""
    from hashlearn.hashers import HASHERS

    with refusals():
        require_choice(method, "--method", HASHERS)
    kind = HASHERS[method]
    known = kind._get_param_names()
    for name in (*named, *parameters):
        if name not in known:
            option = "--set" if name in parameters else f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: method {method!r} has no {name}; it has {', '.join(known)}")
    seeded = {"random_state": seed} if "random_state" in known else {}
    length = {} if n_bits is None else {"n_bits": n_bits}
    return kind(**{**length, **seeded, **named, **parameters})


def _parameters(settings: tuple[str, ...]) -> dict[str, Any]:
    """The values of --set: JSON if they can be read as such, else text."""
    parameters = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise InputError(f"--set: must be NAME=VALUE, got {setting!r}")
        try:
            parameters[name] = json.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


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
    """What to learn from."""

    source: RowSource  # not yet in memory
    y: NDArray[Any] | None

    @classmethod
    def read(cls, features: str, labels: str | None, output: Path, bar: ProgressBar) -> Samples:
        """Open the files, once it is clear that ``output`` can be written."""
        from hashlearn.files import open_rows

        options.require_place(output, features, labels)
        bar.begin("reading")
        with refusals():
            source = open_rows(features)
        return cls(source, options.labels_for(labels, source))

    def save(
        self, hasher: Any, output: Path, bar: ProgressBar, notes: str = ""
    ) -> tuple[dict[str, Any], options.Lines]:
        """Write the model, with the names of its columns if the file has them. Returns the first parts of an answer."""
        import numpy as np

        if self.source.names is not None:
            hasher.feature_names_in_ = np.array(self.source.names, dtype=object)
        bar.begin("writing")
        with refusals(f"--output {output}"):
            hasher.save(output, notes=notes)
        n_rows, n_features, size = self.source.n_rows, self.source.n_features, output.stat().st_size
        report = {
            "model": str(output),
            "n_bits": hasher.n_bits,
            "n_samples": n_rows,
            "n_features": n_features,
            "labels": self.y is not None,
            "bytes": size,
        }
        learned = f"{n_rows:,} rows of {n_features:,} features, with{'out' if self.y is None else ''} labels"
        return report, [("model", f"{output}  ({size:,} bytes)"), ("learned from", learned)]
