"""Memory and its price on a page: floats against codes, for several sizes of the database."""

from __future__ import annotations

from hashlearn.compression.frontier_view import percent
from hashlearn.compression.result import FLOAT_BYTES, Compression
from hashlearn.pages.formatting import ABSENT
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.tables import plain_table

DOLLARS_PER_GB = 4.6  # AWS r6g.large on demand, us-east-1: 16 GiB for $0.1008 an hour, 730 hours a month
SHOWN_ROWS = (1_000_000, 100_000_000)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def savings(plan: Compression, n_rows: int, dollars_per_gb: float) -> list[Markup]:
    """A table with a line for ``n_rows`` and for each of `SHOWN_ROWS`, and the price that it assumes."""
    promise = plan.certificate
    counts = sorted({n_rows, *SHOWN_ROWS})
    caption = [
        element("strong", f"{float_bytes(plan):,} bytes of float32 become {plan.bytes_per_row:,} bytes of code"),
        " Vectors alone, without ids or an index.",
        " The floats stay on disk for rescoring; the price of the disk is not included."
        if promise.keep_floats
        else None,
        " * estimated, not promised." if promise.keep_floats and counts[-1] > promise.n_database else None,
    ]
    heads = ["rows", "floats in memory", "codes in memory", "saved", "floats, $ a month", "codes, $ a month"]
    heads += ["floats on disk", "candidates"] if promise.keep_floats else []
    rows = [_row(plan, count, dollars_per_gb) for count in counts]
    price = f"The price is ${dollars_per_gb:g} for a GiB of memory and month"
    if dollars_per_gb == DOLLARS_PER_GB:
        price += ". It is an assumption: AWS r6g.large on demand (us-east-1) has 16 GiB for $0.1008 an hour."
    else:
        price += ", as given."
    return [plain_table("memory", caption, heads, rows, "Memory and money"), element("p", price)]


def _row(plan: Compression, n_rows: int, dollars_per_gb: float) -> Markup:
    promise = plan.certificate
    floats, codes = n_rows * float_bytes(plan), n_rows * plan.bytes_per_row
    texts = [amount(floats), amount(codes), percent(1.0 - codes / floats, 1)]
    texts += [_dollars(size / 2**30 * dollars_per_gb) for size in (floats, codes)]
    if promise.keep_floats:
        candidates = f"{promise.depth_for(n_rows):,}"
        if n_rows > promise.n_database:
            candidates = ABSENT if promise.growth is None else f"about {candidates}*"
        texts += [amount(floats), candidates]
    return element("tr", element("th", f"{n_rows:,}", scope="row"), (element("td", text) for text in texts))


def float_bytes(plan: Compression) -> int:
    """Bytes of the float vector that a code stands for."""
    return FLOAT_BYTES * int(plan.hasher.n_features_in_)


def amount(size: float) -> str:
    """Bytes in the largest fitting unit.

    >>> amount(640), amount(16_000_000), amount(1_536 * 10**8)
    ('640 bytes', '15.3 MiB', '143 GiB')
    """
    power = 0
    while size >= 999.5 and power + 1 < len(_UNITS):
        size, power = size / 1024.0, power + 1
    return f"{size:.3g} {_UNITS[power]}"


def _dollars(price: float) -> str:
    """Cents for small prices.

    >>> _dollars(0.0), _dollars(0.001), _dollars(41.126), _dollars(1234.5)
    ('0.00', '< 0.01', '41.13', '1,234')
    """
    if 0.0 < price < 0.01:
        return "< 0.01"
    return f"{price:,.2f}" if price < 100.0 else f"{price:,.0f}"
