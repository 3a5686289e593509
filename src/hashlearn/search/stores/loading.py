"""Fill a store from a Parquet file of codes or an Arrow table.

>>> from hashlearn.search.stores import export_codes
>>> export_codes("codes.parquet", "postgres", "postgresql://localhost/mine", table="images")  # doctest: +SKIP
1000000
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressCallback
from hashlearn.search.arrow import about_codes, codes_reader
from hashlearn.search.stores.base import DUPLICATES


def export_codes(
    source: Any,
    to: str,
    place: Any,
    *,
    fields: Sequence[str] | None = None,
    duplicates: str = "replace",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> int:
    """Open the store called ``to`` in `STORES`, fill it from ``source`` as `Store.load` does, and close it.

    ``source`` is a Parquet file of codes, a `pyarrow.Table` or a `pyarrow.RecordBatchReader`. It says what the store
    must be: the number of bits, the kind of ids, more columns and the model. ``place`` and ``options`` are the
    arguments of `Store.open`: a path or a URL, and such as ``table``. ``fields`` are the columns to take along; None:
    all, where the store can keep columns. Returns the number of rows.
    """
    from hashlearn.search.stores import STORES

    require_choice(to, "to", STORES)
    require_choice(duplicates, "duplicates", DUPLICATES)
    kind = STORES[to]
    reader = codes_reader(source, () if fields is None and not kind.has_fields else fields)
    with kind.open(place, about_codes(reader.schema), **options) as store:
        return store.load(reader, duplicates=duplicates, progress=progress)
