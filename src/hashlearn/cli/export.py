"""``hashlearn export CODES --to STORE``: a file of codes into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, Interrupted, refusals
from hashlearn.cli.places import TABLE, engine_errors, has_option, shown_place, table_settings
from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressBar


@click.command("export", short_help="Codes into PostgreSQL, SQLite, LanceDB, usearch, FAISS, DuckDB.")
@click.argument("codes", type=click.Path(path_type=Path))
@options.named_option("--to", "stores", "Store: NAMES.")
@click.option("--url", help="postgres: URL or connection string.  [default: PGHOST and the other variables of libpq]")
@click.option("--path", type=click.Path(path_type=Path), help="All other stores: file or folder of the store.")
@options.table_option
@options.columns_option
@click.option("--add-column", is_flag=True, help="postgres: add the column for codes to a table of your own.")
@click.option("--kind", type=click.Choice(["flat", "hnsw", "ivf"]), help="faiss: kind of index.  [default: flat]")
@click.option(
    "--duplicates",
    type=click.Choice(["replace", "refuse"]),
    help="What happens to ids that are in the store already.  [default: replace]",
)
@options.answers
def export_command(codes: Path, to: str, bar: ProgressBar, **more: Any) -> options.Answer:
    """Put CODES, a Parquet file as encode writes it, into a store.

    Ids, codes and kept columns become visible all at once. After Ctrl-C or a kill the store is as it was before.
    """
    from hashlearn.files import read_codes
    from hashlearn.search.arrow import about_codes
    from hashlearn.search.stores import STORES, export_codes

    with refusals():
        require_choice(to, "--to", STORES)
    if codes.suffix.lower() != ".parquet":
        raise InputError(f"{codes}: must be a Parquet file of codes; hashlearn encode makes one with -o codes.parquet")
    more = {name: value for name, value in more.items() if value not in (None, False)}
    place, settings = _place(to, more)
    with refusals():
        reader = read_codes(codes)
        about = about_codes(reader.schema)
    bar.begin("opening the store")
    try:
        with engine_errors():
            rows = export_codes(reader, to, place, progress=bar, **settings)
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. The store is as it was before.") from None
    left_out = not STORES[to].has_fields and about.fields
    address, table = shown_place(to, place), more.get("table", TABLE) if "table" in settings else None
    report = {
        "codes": str(codes),
        "to": to,
        "place": address,
        "table": table,
        "n_bits": about.n_bits,
        "id_type": about.id_type,
        "model": about.model,
        "rows": rows,
        "notes": [f"{to} keeps ids and codes only; left out: {', '.join(left_out)}"] if left_out else [],
    }
    store = f"{to}, {address}" + (f", table {table}" if table else "")
    return report, [("store", store), ("rows", f"{rows:,} of {about.n_bits} bits")]


def _place(to: str, more: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Where the store is, and its options as `Store.open` takes them. An option of another store is refused."""
    place = "url" if to == "postgres" else "path"
    for name in more:
        if name not in (place, "duplicates") and not has_option(to, name):
            raise InputError(f"--{name.replace('_', '-')}: is not for --to {to}; leave it out")
    if place == "path" and place not in more:
        raise InputError(f"--path: is missing; name the file or folder of the {to} store")
    settings = {name: value for name, value in more.items() if name != place}
    return str(more.get(place, "")), settings | table_settings(to, more.get("table"), more.get("columns"))
