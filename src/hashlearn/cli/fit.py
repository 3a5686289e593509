"""``hashlearn fit FEATURES -o MODEL``: learn a hasher from files and write it as one safe file."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from hashlearn.cli.exits import InputError, refusals
from hashlearn.cli.fit_and_tune import keep_names, learned_from, notices, open_samples
from hashlearn.cli.inputs import json_option, quiet_option, require_place, rows_option, show
from hashlearn.cli.steps import Steps
from hashlearn.cli.text_tables import pairs, seconds
from hashlearn.core.names import did_you_mean


def _names(registry: str) -> Any:
    """Completion in the shell from one of the registries."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from hashlearn import bqp, hash_functions, hashers, inference, targets

        known: dict[str, Iterable[str]] = {
            "methods": hashers.HASHERS,
            "solvers": ["auto", *bqp.METHODS, *inference.PRESETS],
            "targets": ["auto", *targets.TARGETS],
            "hash functions": hash_functions.HASH_FUNCTIONS,
        }
        return [name for name in known[registry] if name.startswith(incomplete)]

    return complete


@click.command("fit", short_help="Learn codes from a file of features; writes a model.")
@click.argument("features", metavar="FEATURES")
@rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels); without, codes group similar rows")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="Where the model goes.")
@click.option("--bits", "n_bits", type=int, default=32, show_default=True, help="Code length.")
@click.option(
    "--method", default="two_step", show_default=True, shell_complete=_names("methods"),
    help="Hasher; an unknown name lists them all.",
)  # fmt: skip
@click.option(
    "--solver", shell_complete=_names("solvers"),
    help="How each bit is solved: auto; a method with its defaults (sdr, al, nopt, graph_cut, spectral, local_search, "
    "exact); or a preset (quick_sdr, coarse_sdr, sampled_sdr, loose_sdr, tabu, sweeps, passes, sampled_al).  "
    "[default: the method's]",
)  # fmt: skip
@click.option("--target", shell_complete=_names("targets"), help="What codes preserve.  [default: the method's]")
@click.option(
    "--hash-function", shell_complete=_names("hash functions"), help="How bits are predicted.  [default: the method's]"
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE",
    help="Any other parameter of the method, such as n_sweeps=5; may be repeated.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.option(
    "--time-limit", type=click.FloatRange(min=0.0, min_open=True), metavar="SECONDS",
    help="For the inference of codes; hash functions are learned after it.",
)  # fmt: skip
@click.option("--notes", default="", help="Kept in the model file.")
@json_option
@quiet_option
def fit_command(
    features: str,
    labels: str | None,
    output: Path,
    n_bits: int,
    method: str,
    settings: tuple[str, ...],
    seed: int,
    notes: str,
    as_json: bool,
    quiet: bool,
    **named: Any,
) -> None:
    """Learn a hasher from FEATURES, a file of rows, and write it to a model file.

    FEATURES is npy, npz or Parquet; FILE::NAME picks an array of an npz or columns of a Parquet file. Without labels
    the default method groups similar rows and does not keep the nearest ones; for those take --target distance, or
    --method itq. The model file takes its place whole or not at all. Exit code 1: it cannot be done here, 2: bad input,
    130: Ctrl-C.
    """
    require_place(output, features, labels)
    hasher = _configured(method, n_bits, named, _given(settings), seed)
    with Steps(quiet) as steps, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        steps.begin("reading")
        source, y = open_samples(features, labels)
        steps.begin("learning")
        if "progress" in hasher.get_params():
            hasher.set_params(progress=steps)
        began = time.perf_counter()
        with refusals():
            hasher.fit(source.read(), y)
            keep_names(hasher, source)
        spent = time.perf_counter() - began
        steps.begin("writing")
        with refusals(f"--output {output}"):
            if "progress" in hasher.get_params():
                hasher.set_params(progress=None)
            hasher.save(output, notes=notes)
    remarks = notices(heard)
    if labels is not None and not hasher._learns_from_labels:
        remarks.append(f"method {method!r} learns without labels: --labels was not used")
    if getattr(getattr(hasher, "inference_report_", None), "out_of_time", False):
        remarks.append("the time limit ended the inference of codes; later bits are less well solved")
    for notice in remarks:
        click.echo(f"Note: {notice}", err=True)
    report = {
        "model": str(output),
        "method": method,
        "n_bits": hasher.n_bits,
        "n_samples": source.n_rows,
        "n_features": source.n_features,
        "labels": labels is not None,
        "seed": seed,
        "seconds": spent,
        "bytes": output.stat().st_size,
        "notes": remarks,
    }
    show(as_json, report, _text(report))


def _configured(method: str, n_bits: int, named: dict[str, Any], given: dict[str, Any], seed: int) -> Any:
    """The unfitted hasher, with what was said by options of that name and by --set."""
    from hashlearn.hashers import HASHERS

    if method not in HASHERS:
        hint = did_you_mean(method, HASHERS)
        raise InputError(f"--method: must be one of {', '.join(HASHERS)}, got {method!r}{hint}")
    kind = HASHERS[method]
    known = kind._get_param_names()
    named = {name: value for name, value in named.items() if value is not None}
    for name in (*named, *given):
        if name not in known:
            option = "--set" if name in given else f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: method {method!r} has no {name}; it has {', '.join(known)}")
    seeded = {"random_state": seed} if "random_state" in known else {}
    return kind(**{"n_bits": n_bits, **seeded, **named, **given})


def _given(settings: tuple[str, ...]) -> dict[str, Any]:
    """Values are JSON where they can be read as such, and else text."""
    found = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise InputError(f"--set: must be NAME=VALUE, got {setting!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
        except RecursionError:
            raise InputError(f"--set: the value of {name} has too many brackets in brackets") from None
    return found


def _text(report: dict[str, Any]) -> str:
    return pairs(
        [
            ("model", f"{report['model']}  ({report['bytes']:,} bytes)"),
            ("method", f"{report['method']}, {report['n_bits']} bits"),
            ("learned from", learned_from(report)),
            ("seconds", seconds(report["seconds"])),
        ]
    )
