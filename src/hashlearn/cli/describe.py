"""``hashlearn describe``: what a model, a file of codes, an index or a store is, and which model made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import one_line, refusals, refuse
from hashlearn.cli.places import shown_place, store_at, store_opened
from hashlearn.core.progress import ProgressBar


@click.command("describe", short_help="What a model is and what it was learned from; codes, indexes, stores.")
@click.argument("place")
@options.table_option
@options.columns_option
@options.answers
def describe_command(place: str, table: str | None, columns: str | None, bar: ProgressBar) -> options.Answer:
    """Describe what is at PLACE: a model, codes (Parquet or npy), an index of HammingIndex, or a store that export
    filled, by its file, folder, URL or connection string.

    A model: class and changed parameters, what it was learned from, size, digest, and its promise if hashlearn compress
    made it. Codes, an index or a store: which model made them.
    """
    from hashlearn.core.container import PersistenceError, has_kind
    from hashlearn.files import describe_codes
    from hashlearn.search import HammingIndex
    from hashlearn.search.index import FILE

    file = Path(place)
    with refusals():
        store = store_at(place)
    if store is not None:
        bar.begin("opening the store")
        with store_opened(store, place, table, columns) as opened:
            about = {"rows": len(opened), **_about(opened), "fields": [*opened.fields]}
            shown = shown_place(store, place) + (f", table {table}" if table else "")
        return _codes({"place": shown, "kind": "store", "store": store}, about)
    refuse(
        (table is not None, f"--table: {place} is no store; leave it out"),
        (columns is not None, f"--columns: {place} is no store; leave it out"),
    )
    with refusals():
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file")
        if file.suffix.lower() in (".parquet", ".npy"):
            about = describe_codes(file)._asdict()
            return _codes({"file": place, "kind": "codes"}, about | {"fields": [*about["fields"]]}, file)
        bar.begin("loading")
        try:
            return _model(file)
        except PersistenceError:
            if not has_kind(file, FILE):
                raise
        index = HammingIndex.load(file)
        return _codes({"file": place, "kind": "index"}, {"rows": len(index), **_about(index)}, file)


def _about(codes: Any) -> dict[str, Any]:
    return {"n_bits": codes.n_bits, "id_type": codes.id_type, "model": codes.model}


def _codes(report: dict[str, Any], about: dict[str, Any], file: Path | None = None) -> options.Answer:
    """The answer about codes, wherever they are."""
    from hashlearn.search.ids import WORDS

    bits = "an unknown number of" if about["n_bits"] is None else f"{about['n_bits']:,}"
    name = f"  ({about['model_name']})" if about.get("model_name") else ""
    is_store = report["kind"] == "store"
    lines = [("store", f"{report['store']}, {report['place']}")] if is_store else []
    lines.append(("codes" if is_store else report["kind"], f"{about['rows']:,} of {bits} bits"))
    if about["id_type"] is not None:  # an index without codes does not know the type of its ids yet
        lines.append(("ids", WORDS[about["id_type"]]))
    if about.get("fields"):
        lines.append(("columns", ", ".join(about["fields"])))
    if file is not None:
        about |= {"bytes": file.stat().st_size}
        lines.append(("file", f"{about['bytes']:,} bytes"))
    lines.append(("model", f"{about['model']}{name}" if about["model"] else "not recorded"))
    return report | about, lines


def _model(file: Path) -> options.Answer:
    from hashlearn.persistence import load_with_description

    hasher, about = load_with_description(file)
    origin, versions = about["provenance"], about["provenance"].get("versions", {})
    samples = origin.get("n_samples")
    rows = "an unknown number of rows" if samples is None else f"{samples:,} rows"
    lines = [
        ("model", " ".join(repr(hasher).split())),
        ("code", f"{about['n_bits']:,} bits from {about['n_features']:,} features"),
        ("learned from", f"{rows} of {about['n_features']:,} features"),
        ("written", f"{origin.get('created', 'at an unknown time')}, hashlearn {versions.get('hashlearn', '?')}"),
        ("notes", origin.get("notes", "")),
        ("left out", ", ".join(about["left_out"])),
        ("file", f"{about['bytes']:,} bytes, format {about['format_version']}"),
        ("digest", about["digest"]),
        ("promise", _promise(file, hasher, about)),
    ]
    return {"file": str(file), "kind": "model", **about}, [(name, text) for name, text in lines if text]


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
