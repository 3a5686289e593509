"""``hashlearn describe``: what a model file, a file of codes or an index is, and which model made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import one_line, refusals
from hashlearn.core.progress import ProgressBar


@click.command("describe", short_help="What a model is and what it was learned from; codes, indexes.")
@click.argument("file", type=click.Path(path_type=Path))
@options.answers
def describe_command(file: Path, bar: ProgressBar) -> options.Answer:
    """Describe FILE: a model, codes (Parquet or npy) or an index of HammingIndex.

    A model: class and changed parameters, what it was learned from, size, digest, and its promise if hashlearn compress
    made it. Codes and an index: which model made them.
    """
    with refusals():
        described = _way(file)
    return described(file, bar)


def _way(file: Path) -> Callable[[Path, ProgressBar], options.Answer]:
    """How to describe it, by its ending or its first bytes."""
    from hashlearn.core.container import has_kind
    from hashlearn.search.index import FILE

    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    if file.suffix.lower() in (".parquet", ".npy"):
        return _codes
    return _index if has_kind(file, FILE) else _model


def _model(file: Path, bar: ProgressBar) -> options.Answer:
    from hashlearn.persistence import load_with_description

    hasher, about = options.loaded(file, bar, load_with_description)
    report = {"file": str(file), "kind": "model", **about}
    made, versions = about["provenance"], about["provenance"].get("versions", {})
    samples = made.get("n_samples")
    rows = "an unknown number of rows" if samples is None else f"{samples:,} rows"
    lines = [
        ("model", " ".join(repr(hasher).split())),
        ("code", f"{about['n_bits']:,} bits from {about['n_features']:,} features"),
        ("learned from", f"{rows} of {about['n_features']:,} features"),
        ("written", f"{made.get('created', 'at an unknown time')}, hashlearn {versions.get('hashlearn', '?')}"),
        *([("notes", made["notes"])] if made.get("notes") else []),
        *([("left out", ", ".join(about["left_out"]))] if about["left_out"] else []),
        ("file", f"{about['bytes']:,} bytes, format {about['format_version']}"),
        ("digest", about["digest"]),
        ("promise", _promise(file, hasher, about)),
    ]
    return report, lines


def _promise(file: Path, hasher: Any, about: dict[str, Any]) -> str:
    """The promise of hashlearn compress in words; another one as it stands."""
    from hashlearn.compression import Compression

    promise = about["promise"]
    if promise is None:
        return "none; hashlearn compress makes models with one"
    try:
        return " ".join(str(Compression.from_model(file, hasher, about)).split())
    except ValueError as error:
        return f"not valid: {one_line(error)}" if "certificate" in promise else json.dumps(promise)


def _codes(file: Path, bar: ProgressBar) -> options.Answer:
    from hashlearn.files import describe_codes

    with refusals():
        about = describe_codes(file)
    size = file.stat().st_size
    report = {"file": str(file), "kind": "codes", **about._asdict(), "fields": list(about.fields), "bytes": size}
    bits = "an unknown number of" if about.n_bits is None else f"{about.n_bits:,}"
    lines = [("codes", f"{about.rows:,} of {bits} bits"), *_about_ids(about.id_type)]
    if about.fields:
        lines.append(("columns", ", ".join(about.fields)))
    return report, [*lines, ("file", f"{size:,} bytes"), ("model", _made_by(about.model, about.model_name))]


def _index(file: Path, bar: ProgressBar) -> options.Answer:
    from hashlearn.search import HammingIndex

    bar.begin("loading the index")
    with refusals():
        index = HammingIndex.load(file)
    size, id_type = file.stat().st_size, getattr(index, "id_type", "int64")
    about = {"rows": len(index), "n_bits": index.n_bits, "model": index.model, "id_type": id_type}
    report = {"file": str(file), "kind": "index", **about, "bytes": size}
    codes = f"{len(index):,} of {index.n_bits:,} bits"
    lines = [
        ("index", codes),
        *_about_ids(id_type),
        ("file", f"{size:,} bytes"),
        ("model", _made_by(index.model, None)),
    ]
    return report, lines


def _about_ids(id_type: str | None) -> list[tuple[str, str]]:
    """An index without codes does not know the type of its ids yet."""
    from hashlearn.search.ids import WORDS

    return [] if id_type is None else [("ids", WORDS[id_type])]


def _made_by(model: str | None, name: str | None) -> str:
    if model is None:
        return "not recorded"
    return model + (f"  ({name})" if name else "")
