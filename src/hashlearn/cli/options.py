"""Options, input files and answers that several commands share. Errors name the option."""

from __future__ import annotations

import functools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from hashlearn.cli.exits import FAILED, InputError, one_line, refusals, refuse
from hashlearn.cli.text_tables import pairs
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hashlearn.files import RowSource
    from hashlearn.search.ids import IdArray

Lines: TypeAlias = list[tuple[str, str]]  # names and texts, printed in two columns
Answer: TypeAlias = tuple[dict[str, Any], *tuple[str | Lines, ...]]  # a report for programs, paragraphs for people

model_argument = click.argument("model", type=click.Path(path_type=Path))
features_argument = click.argument("features", metavar="FEATURES")
bits_option = click.option("--bits", "n_bits", type=int, default=32, help="Code length.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar.")
batch_option = click.option(
    "--batch-rows", type=click.IntRange(min=1), metavar="N", help="Rows encoded at a time.  [default: 64 MB of them]"
)


def rows_option(flag: str, what: str, *, required: bool = False) -> Callable[..., Any]:
    """An option that names a file of rows, labels or codes."""
    return click.option(flag, metavar="FILE", required=required, help=f"{what}.")


table_option = click.option("--table", help="Table in the store; SCHEMA.NAME in PostgreSQL.  [default: codes]")
columns_option = click.option(
    "--columns", metavar="ID,CODE", help="postgres: columns of a table of your own.  [default: id,code]"
)
database_option = rows_option("--database", "Rows to search")
database_codes_option = rows_option("--database-codes", "Instead: their codes, npy or Parquet, as encode wrote them")
queries_option = rows_option("--queries", "Rows to search for", required=True)


def output_option(what: str, default: str | None = None, *, required: bool = True) -> Callable[..., Any]:
    """The file to write; `require_place` checks it."""
    settings: dict[str, Any] = {"required": required} if default is None else {"default": default}
    return click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help=what, **settings)


def file_option(flag: str, what: str) -> Callable[..., Any]:
    """A further file to write, or a store."""
    return click.option(flag, type=click.Path(path_type=Path), metavar="FILE", help=what)


class _NamedOption(click.Option):
    """An option for a name in a registry: help and shell completion list the names. Only these two import it."""

    def __init__(self, *flags: Any, registry: str, **settings: Any) -> None:
        super().__init__(*flags, **settings)
        self.registry = registry

    def names(self) -> list[str]:
        """All names that the option takes."""
        from hashlearn import bqp, hash_functions, hashers, inference, targets
        from hashlearn.bqp.modeling.problem_files import FORMATS
        from hashlearn.hashers.ranking import ENCODERS
        from hashlearn.search.stores import STORES

        known: dict[str, Iterable[str]] = {
            "methods": hashers.HASHERS,
            "encoders": ENCODERS,
            "solvers": [*bqp.METHODS, *inference.PRESETS],
            "targets": [*targets.AUTOMATIC, *targets.TARGETS],
            "hash functions": ["auto", *hash_functions.HASH_FUNCTIONS],
            "solvers of one problem": bqp.METHODS,
            "problem formats": FORMATS,
            "stores": STORES,
        }
        return list(known[self.registry])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("NAMES", ", ".join(self.names())))


def named_option(flag: str, registry: str, what: str, default: str | None = None) -> Callable[..., Any]:
    """An option that takes a name in a registry; NAMES in ``what`` stands for all of them."""
    return click.option(flag, cls=_NamedOption, registry=registry, default=default, help=what)


sense_option = click.option(
    "--sense", type=click.Choice(["max-cut", "qubo", "ising"]), help="What the file holds.  [default: by its format]"
)
format_option = named_option("--format", "problem formats", "How it is written: NAMES.  [default: by its ending]")


def seconds_option(flag: str, what: str, default: float | None = None) -> Callable[..., Any]:
    """A positive number of seconds."""
    kind = click.FloatRange(min=0.0, min_open=True)
    return click.option(flag, type=kind, default=default, metavar="SECONDS", help=what)


def loaded(model: Path, bar: ProgressBar, read: Callable[[Path], Any] | None = None) -> Any:
    """The hasher in a model file, or what ``read`` makes of the file."""
    from hashlearn import load

    bar.begin("loading the model")
    with refusals():
        if not model.exists():
            raise FileNotFoundError(f"{model}: there is no such model file; hashlearn fit makes one")
        if model.is_dir():
            raise IsADirectoryError(f"{model}: is a folder, not a model file")
        return (read or load)(model)


def rows_for(
    hasher: Any,
    address: str,
    about: str,
    *,
    like: RowSource | None = None,
    id_column: str | bool | None = None,
    keep: Iterable[str] = (),
) -> RowSource:
    """Rows of a file with the features that the hasher expects. Named columns are put in the hasher's order.

    For a hasher without feature names the columns must be those of ``like``, rows that were opened before.
    """
    from hashlearn.files import open_rows
    from hashlearn.files.encoding import require_columns

    with refusals(about):
        learned = getattr(hasher, "feature_names_in_", None)
        names = None if learned is None else [str(name) for name in learned]
        source = open_rows(address, names=names, id_column=id_column, keep=list(keep))
        require_columns(hasher, source, like)
        return source


def rows_like(address: str, source: RowSource) -> Any:
    """Rows of queries, in memory, with the columns of the source."""
    from hashlearn.core.rows import require_same_columns
    from hashlearn.files import open_rows

    with refusals("--queries"):
        queries = open_rows(address, names=source.names)
        if queries.n_features != source.n_features:
            raise ValueError(
                f"{address}: has {queries.n_features} feature(s) a row, {source.name} has {source.n_features}"
            )
        require_same_columns(queries.names, source.names, f"{queries.name}: its rows", source.name)
        return queries.read()


def encoded(hasher: Any, source: RowSource, option: str, bar: ProgressBar, batch_rows: int | None) -> NDArray[np.uint8]:
    """Packed codes of the rows of a file."""
    from hashlearn.files import encode_rows

    with refusals(option):
        return encode_rows(hasher, source, batch_rows=batch_rows, progress=bar)


def database_for(
    hasher: Any, model: Path, files: tuple[str | None, str | None], like: Any, bar: ProgressBar, batch_rows: int | None
) -> tuple[NDArray[np.uint8], Callable[[], IdArray]]:
    """Packed codes of a database, and a function that reads their ids. ``files`` are its rows or its codes.

    ``like`` is as in `rows_for`.
    """
    from hashlearn.files import codes_and_ids
    from hashlearn.persistence import fingerprint

    rows, codes = files
    refuse(((rows is None) == (codes is None), "--database: give either --database or --database-codes"))
    if codes is not None:
        with refusals("--database-codes"):
            packed, ids = codes_and_ids(codes, hasher.n_bits, fingerprint(hasher), model.name)
        return packed, lambda: ids
    source = rows_for(hasher, str(rows), "--database", like=like)
    return encoded(hasher, source, "--database", bar, batch_rows), lambda: ids_of(source, "--database")


def read(source: RowSource, option: str) -> Any:
    """All rows of a file, in memory."""
    with refusals(option):
        return source.read()


def ids_of(source: RowSource, option: str, *, distinct: bool = True) -> IdArray:
    """The ids of the rows of a file, or row numbers."""
    with refusals(option):
        return source.read_ids(distinct=distinct)


def labels_for(address: str | None, source: RowSource) -> NDArray[Any] | None:
    """The labels of rows, as many as there are rows."""
    from hashlearn.files import read_labels

    if address is None:
        return None
    with refusals("--labels"):
        labels = read_labels(address)
        if len(labels) != source.n_rows:
            raise ValueError(f"{address}: has {len(labels)} label(s), {source.name} has {source.n_rows} row(s)")
        return labels


def texts_for(address: str | None, n_rows: int | None, flag: str) -> Any:
    """A text for each row of another file."""
    from hashlearn.files import read_labels

    if address is None:
        return None
    with refusals(flag):
        texts = read_labels(address)
        if texts.ndim != 1 or len(texts) != n_rows:
            raise ValueError(
                f"{address}: has shape {texts.shape}, and there must be one text for each of {n_rows} row(s)"
            )
        return texts.astype(str)


def require_place(output: Path, *inputs: Path | str | None, option: str = "--output") -> None:
    """Refuse, before the work begins, an output file that could not be written after it."""
    from hashlearn.core.atomic_files import output_place
    from hashlearn.files.opening import split_address

    with refusals():
        taken = [os.path.realpath(split_address(file)[0]) for file in inputs if file is not None]
    try:
        output_place(output)
    except (OSError, ValueError) as error:
        raise InputError(f"{option} {one_line(error)}") from None
    if os.path.realpath(output) in taken:
        raise InputError(f"{option} {output}: is an input of this command; name another file")


def write_output(output: Path, text: str) -> None:
    """Write a text file as a whole."""
    from hashlearn.core.atomic_files import write_atomically

    with refusals("--output"):
        write_atomically(output, [text.encode()])


def answers(command: Callable[..., Answer]) -> Callable[..., None]:
    """Give a command --json, --quiet and a progress ``bar``, and print the report or the paragraphs that it returns.

    The report gets the seconds of the command and its warnings, each once, as notes. A report whose ``ok`` is False
    ends the command with exit code 1.
    """

    @json_option
    @quiet_option
    @functools.wraps(command)
    def run(*args: Any, as_json: bool, quiet: bool, **values: Any) -> None:
        began = time.perf_counter()
        with ProgressBar(quiet) as bar, warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # `rows_for` compares them
            report, *paragraphs = command(*args, bar=bar, **values)
        spent = time.perf_counter() - began
        report = {"seconds": spent, **report, "notes": [*notices(heard), *report.get("notes", ())]}
        for note in report["notes"]:
            click.echo(f"Note: {note}", err=True)
        texts = [part if isinstance(part, str) else pairs([*part, ("seconds", seconds(spent))]) for part in paragraphs]
        show(as_json, report, "\n\n".join(texts))
        if not report.get("ok", True):
            raise click.exceptions.Exit(FAILED)

    return run


def notices(heard: Iterable[warnings.WarningMessage]) -> list[str]:
    """Each warning once, as one line."""
    return list(dict.fromkeys(one_line(str(warning.message)) for warning in heard))


def show(as_json: bool, report: dict[str, Any], text: str) -> None:
    """Print the answer: one JSON object for programs, or text for people."""
    click.echo(json.dumps(report, allow_nan=False) if as_json else text)
