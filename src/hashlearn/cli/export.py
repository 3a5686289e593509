"""``hashlearn export``: a model as ONNX, or a file of codes into a store."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import Failure, InputError, Interrupted, one_line, refusals
from hashlearn.cli.text_tables import pairs
from hashlearn.core.names import require_choice
from hashlearn.core.progress_bar import ProgressBar
from hashlearn.pages.formatting import seconds

ONNX = "onnx"
OF_ONNX = {"output": "--output", "sample": "--sample", "dtype": "--dtype", "opset": "--opset"}
OF_STORES = {
    "url": "--url",
    "path": "--path",
    "table": "--table",
    "columns": "--columns",
    "add_column": "--add-column",
    "kind": "--kind",
    "duplicates": "--duplicates",
    "batch_rows": "--batch-rows",
}
TABLE = "codes"


@click.command("export", short_help="A model as ONNX; codes into PostgreSQL, SQLite, LanceDB, usearch, FAISS, DuckDB.")
@click.argument("source", type=click.Path(path_type=Path))
@options.named_option("--to", "places", "Where it goes: NAMES.  [default: onnx]")
@options.output_option("onnx: where the graph goes, .onnx.", required=False)
@options.rows_option("--sample", "onnx: rows to compare on; without, made-up ones")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), help="onnx: type of its input.  [default: float64]")
@click.option("--opset", type=int, help="onnx: version of the standard operators.  [default: 18]")
@click.option("--url", help="postgres: URL or connection string.  [default: PGHOST and the other variables of libpq]")
@click.option("--path", type=click.Path(path_type=Path), help="All other stores: file or folder of the store.")
@click.option("--table", help=f"Table in the store; SCHEMA.NAME in PostgreSQL.  [default: {TABLE}]")
@click.option("--columns", metavar="ID,CODE", help="postgres: columns of a table of your own.  [default: id,code]")
@click.option("--add-column", is_flag=True, help="postgres: add the column for codes to a table of your own.")
@click.option("--kind", type=click.Choice(["flat", "hnsw", "ivf"]), help="faiss: kind of index.  [default: flat]")
@click.option(
    "--duplicates",
    type=click.Choice(["replace", "refuse"]),
    help="What happens to ids that are in the store already.  [default: replace]",
)
@click.option("--batch-rows", type=click.IntRange(min=1), metavar="N", help="Rows sent to a store at a time.")
@options.answers
def export_command(source: Path, to: str | None, bar: ProgressBar, **given: Any) -> tuple[dict[str, Any], str]:
    """Export SOURCE: a model as an ONNX graph, or a Parquet file of codes, as encode writes it, into a store.

    ONNX: features → margins → packed codes, written once onnxruntime gave the codes of encode.

    Stores: ids, codes and kept columns become visible all at once. After Ctrl-C or a kill the store is as it was
    before. Exit code 1: it cannot be done here (is the package installed, does the
    server answer?), 2: bad input, 130: Ctrl-C.
    """
    is_codes, name = source.suffix.lower() == ".parquet", to or ONNX
    if name != ONNX or is_codes:
        from hashlearn.search.stores import STORES

        if to is None:
            raise InputError(f"--to: is missing; say where the codes of {source} go: {', '.join(STORES)}")
        with refusals():
            require_choice(name, "--to", [ONNX, *STORES])
    for argument, flag in (OF_STORES if name == ONNX else OF_ONNX).items():
        if given.pop(argument):
            raise InputError(f"{flag}: is not for --to {name}; leave it out")
    if name == ONNX:
        return _to_onnx(source, bar, **given)
    if not is_codes:
        raise InputError(f"{source}: must be a Parquet file of codes; hashlearn encode makes one with -o codes.parquet")
    return _to_store(source, name, bar, **given)


def _to_onnx(
    model: Path, bar: ProgressBar, output: Path | None, sample: str | None, dtype: str | None, opset: int | None
) -> tuple[dict[str, Any], str]:
    from hashlearn.persistence import export_onnx
    from hashlearn.persistence.onnx_export import OPSET

    if output is None:
        raise InputError("--output: is missing; name the .onnx file to write")
    options.require_place(output, model, sample)
    if output.suffix.lower() != ".onnx":
        raise InputError(f"--output {output}: a graph is written as .onnx, got {output.suffix or 'no ending'!r}")
    hasher = options.loaded(model, bar)
    rows = None if sample is None else options.rows_for(hasher, sample, "--sample")
    bar.begin("exporting and comparing")
    with refusals(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared
        X = None if rows is None else rows.read()
        version = OPSET if opset is None else opset
        found = export_onnx(hasher, output, sample=X, dtype=dtype or "float64", opset=version)
    text = [
        ("graph", f"{output}  ({found.bytes:,} bytes, opset {found.opset}, {found.dtype})"),
        ("compared", f"{found.bits:,} bits of {found.rows:,} rows, {found.differing} differ"),
        ("near zero", f"{found.within_rounding} margin(s) are 0 up to rounding"),
    ]
    return {"output": str(output), **found._asdict()}, pairs(text)


def _to_store(
    source: Path,
    name: str,
    bar: ProgressBar,
    url: str | None,
    path: Path | None,
    table: str | None,
    duplicates: str | None,
    batch_rows: int | None,
    **settings: Any,
) -> tuple[dict[str, Any], str]:
    from hashlearn.search.stores import STORES
    from hashlearn.search.stores.loading import export_codes
    from hashlearn.search.stores.postgres.session import shown_address
    from hashlearn.streams import describe_codes

    takes = inspect.signature(STORES[name].create).parameters  # type: ignore[attr-defined]
    place = _place(name, url, path, table, "table" in takes)
    settings = {key: value for key, value in settings.items() if value}
    for argument in settings:
        if argument not in takes:
            raise InputError(f"{OF_STORES[argument]}: is not for --to {name}; leave it out")
    if "columns" in settings:
        settings["columns"] = _two_columns(settings["columns"])
    with refusals():
        about = describe_codes(source)
    bar.begin("opening the store")
    began = time.perf_counter()
    with _errors(STORES[name].packages):
        rows = export_codes(
            source,
            name,
            *place,
            duplicates=duplicates or "replace",
            batch_rows=batch_rows,
            progress=bar,
            **settings,
        )
    spent = time.perf_counter() - began
    where = shown_address(url or "") if name == "postgres" else str(path)
    of_table = ".".join([place[1]] if isinstance(place[1], str) else place[1]) if len(place) > 1 else None
    report = {
        "source": str(source),
        "to": name,
        "place": where,
        "table": of_table,
        "n_bits": about.n_bits,
        "id_type": about.id_type,
        "model": about.model,
        "rows": rows,
        "seconds": spent,
        "notes": [] if STORES[name].has_fields or not about.fields else [_left_out(name, about.fields)],
    }
    text = [
        ("store", f"{name}, {where}" + (f", table {of_table}" if of_table else "")),
        ("rows", f"{rows:,} of {about.n_bits} bits"),
        ("seconds", seconds(spent)),
    ]
    return report, pairs(text)


def _place(name: str, url: str | None, path: Path | None, table: str | None, has_table: bool) -> tuple[Any, ...]:
    """What opens the store: a URL or a path, and a table if it has tables."""
    if name == "postgres":
        if path is not None:
            raise InputError("--path: is not for --to postgres; give --url, or set PGHOST and the like")
        schema, _, alone = (table or TABLE).rpartition(".")
        return url or "", (schema, alone) if schema else alone
    if url is not None:
        raise InputError(f"--url: is not for --to {name}; give --path")
    if path is None:
        raise InputError(f"--path: is missing; name the file or folder of the {name} store")
    if not has_table:
        if table is not None:
            raise InputError(f"--table: is not for --to {name}, which has no tables; leave it out")
        return (path,)
    return path, table or TABLE


def _left_out(name: str, fields: tuple[str, ...]) -> str:
    return f"{name} keeps ids and codes only; left out: {', '.join(fields)}"


def _two_columns(text: str) -> tuple[str, str]:
    names = text.split(",")
    if len(names) != 2 or not all(names):
        raise InputError(f"--columns: must be two names, as id,code; got {text!r}")
    return names[0], names[1]


@contextmanager
def _errors(packages: tuple[str, ...]) -> Iterator[None]:
    """One line for whatever a store or its packages raise."""
    try:
        with refusals():
            yield
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. The store is as it was before.") from None
    except click.ClickException:
        raise
    except Exception as error:
        engines = {package.partition(".")[0] for package in packages}
        if type(error).__module__.lstrip("_").partition(".")[0] not in engines and not isinstance(error, RuntimeError):
            raise
        raise Failure(one_line(error)) from None
