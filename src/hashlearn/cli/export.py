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
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import seconds

ONNX = "onnx"
OF_ONNX = {"output", "sample", "dtype", "opset"}
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
    before.
    """
    is_codes, name = source.suffix.lower() == ".parquet", to or ONNX
    if name != ONNX or is_codes:
        from hashlearn.search.stores import STORES

        if to is None:
            raise InputError(f"--to: is missing; say where the codes of {source} go: {', '.join(STORES)}")
        with refusals():
            require_choice(name, "--to", [ONNX, *STORES])
    given = {argument: value for argument, value in given.items() if value is not None and value is not False}
    for argument in given.keys() - _arguments_of(name):
        raise InputError(f"--{argument.replace('_', '-')}: is not for --to {name}; leave it out")
    if name == ONNX:
        return _to_onnx(source, bar, **given)
    if not is_codes:
        raise InputError(f"{source}: must be a Parquet file of codes; hashlearn encode makes one with -o codes.parquet")
    return _to_store(source, name, bar, **given)


def _arguments_of(name: str) -> set[str]:
    """What goes with a place: the arguments of ONNX, or those with which its store is made."""
    from hashlearn.search.stores import STORES

    if name == ONNX:
        return OF_ONNX
    own = inspect.signature(STORES[name].open).parameters
    return {"url" if name == "postgres" else "path", "duplicates", "batch_rows", *own}


def _to_onnx(
    model: Path, bar: ProgressBar, output: Path | None = None, sample: str | None = None, **settings: Any
) -> tuple[dict[str, Any], str]:
    from hashlearn.persistence import export_onnx

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
        found = export_onnx(hasher, output, sample=X, **settings)
    text = [
        ("graph", f"{output}  ({found.bytes:,} bytes, opset {found.opset}, {found.dtype})"),
        ("compared", f"{found.bits:,} bits of {found.rows:,} rows, {found.differing} differ"),
        ("near zero", f"{found.within_rounding} margin(s) are 0 up to rounding"),
    ]
    return {"output": str(output), **found._asdict()}, pairs(text)


def _to_store(
    source: Path, name: str, bar: ProgressBar, url: str = "", path: Path | None = None, table: str = TABLE, **given: Any
) -> tuple[dict[str, Any], str]:
    from hashlearn.files import describe_codes
    from hashlearn.search.stores import STORES
    from hashlearn.search.stores.loading import export_codes
    from hashlearn.search.stores.postgres.session import shown_address

    is_postgres, has_table = name == "postgres", "table" in _arguments_of(name)
    if path is None and not is_postgres:
        raise InputError(f"--path: is missing; name the file or folder of the {name} store")
    schema, _, alone = table.rpartition(".")
    if is_postgres:
        given["table"] = (schema, alone) if schema else alone
    elif has_table:
        given["table"] = table
    if "columns" in given:
        given["columns"] = tuple(given["columns"].split(","))
        if len(given["columns"]) != 2 or not all(given["columns"]):
            raise InputError(f"--columns: must be two names, as id,code; got {','.join(given['columns'])!r}")
    with refusals():
        about = describe_codes(source)
    bar.begin("opening the store")
    began = time.perf_counter()
    with _errors(STORES[name].packages):
        rows = export_codes(source, name, url if is_postgres else path, progress=bar, **given)
    spent = time.perf_counter() - began
    where, left_out = shown_address(url) if is_postgres else str(path), not STORES[name].has_fields and about.fields
    report = {
        "source": str(source),
        "to": name,
        "place": where,
        "table": table if has_table else None,
        "n_bits": about.n_bits,
        "id_type": about.id_type,
        "model": about.model,
        "rows": rows,
        "seconds": spent,
        "notes": [f"{name} keeps ids and codes only; left out: {', '.join(about.fields)}"] if left_out else [],
    }
    text = [
        ("store", f"{name}, {where}" + (f", table {table}" if has_table else "")),
        ("rows", f"{rows:,} of {about.n_bits} bits"),
        ("seconds", seconds(spent)),
    ]
    return report, pairs(text)


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
