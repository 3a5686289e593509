"""The page "Will binary codes hurt my search?": the promise, what it costs and saves, and settings to copy.

One self-contained HTML file: no script, no request, light and dark, wide and narrow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hashlearn.compression.engine_settings import (
    EngineSetting,
    hamming_depth,
    hamming_settings,
    hashlearn_setting,
)
from hashlearn.compression.example_view import Contents, example_parts
from hashlearn.compression.frontier_view import MODES, frontier_figures, frontier_table
from hashlearn.compression.result import FLOAT_BYTES, Certificate, Compression
from hashlearn.core.atomic_files import write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.pages.document import document
from hashlearn.pages.formatting import ABSENT, byte_size, counted, percent
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.tables import plain_table

DOLLARS_PER_GB = 4.6  # AWS r6g.large on demand, us-east-1: 16 GiB for $0.1008 an hour, 730 hours a month
SHOWN_ROWS = (1_000_000, 100_000_000)
QUESTION = "Will binary codes hurt my search?"


def write_page(
    plan: Compression,
    path: str | os.PathLike[str],
    *,
    texts: Sequence[str] | None = None,
    images: Sequence[Any] | None = None,
    query_texts: Sequence[str] | None = None,
    query_images: Sequence[Any] | None = None,
    n_rows: int | None = None,
    title: str | None = None,
) -> None:
    """Write the page to a file, completely or not at all.

    Parameters
    ----------
    plan : what `hashlearn.compress` returned
    texts, images : the contents of the rows of X, shown in examples; images are uint8 (h, w) or (h, w, 3)
    query_texts, query_images : the same for queries of your own
    n_rows : the size of the database to compute memory and its price for; None: the rows of X
    title : name of the collection, shown above the question
    """
    promise = plan.certificate
    wanted = promise.n_rows if n_rows is None else whole_number(n_rows, "n_rows", least=1)
    database, queries = Contents("", texts, images), Contents("query_", query_texts, query_images)
    sections = [
        ("frontier", "What each size keeps", _frontier(plan)),
        ("memory", "Memory and money", _savings(plan, wanted)),
        ("examples", "Queries whose neighbors changed", _examples(plan, database, queries)),
        ("settings", "Settings to copy", _settings(plan)),
        ("promise", "What the promise covers", _coverage(promise)),
    ]
    header = element(
        "header",
        element("p", title or "hashlearn compress", class_="over"),
        element("h1", QUESTION),
        element("p", verdict(plan), class_="lead"),
        _facts(plan, wanted),
    )
    main = element(
        "main", (element("section", element("h2", name), body, id=anchor) for anchor, name, body in sections)
    )
    text = document(f"{title}: {QUESTION}" if title else QUESTION, header, main)
    write_atomically(Path(path), [text.encode("utf-8")])


def verdict(plan: Compression) -> str:
    """The answer, and the promise in the words of the plan."""
    promise = plan.certificate
    answer = "No" if promise.kept else "Yes" if promise.measured < promise.recall else "It may"
    return f"{answer}: {' '.join(str(plan).splitlines()[:-1])}"


def _facts(plan: Compression, n_rows: int) -> Markup:
    promise = plan.certificate
    kind = "queries of yours" if promise.own_queries else "rows of X that were kept out of the database"
    database = counted(promise.n_database, "row")
    if promise.n_rows > promise.n_database:
        database += f" of the {promise.n_rows:,} that were given"
    search = MODES[promise.mode]
    if promise.keep_floats:
        search += f", then {promise.depth:,} candidates rescored by {promise.metric}"
    facts = {
        "measured recall": f"{percent(promise.measured, 3)}, mean of the test queries",
        "test queries": f"{promise.n_testing:,} {kind}; {promise.n_choosing:,} others chose the code",
        "database searched": database,
        "code": f"{promise.family}, {promise.n_bits:,} bits",
        "search": search,
    }
    if promise.keep_floats and n_rows > promise.n_database and promise.growth is not None:
        estimate = f"about {promise.depth_for(n_rows):,} candidates, estimated and not promised"
        facts[f"with {counted(n_rows, 'row')}"] = estimate
    return element("dl", ((element("dt", name), element("dd", fact)) for name, fact in facts.items()), class_="facts")


def _frontier(plan: Compression) -> list[Markup]:
    about = "Smaller codes lose more neighbors."
    if plan.certificate.keep_floats:
        about += (
            " More candidates make up for it. Where no number of candidates can be promised to be enough, a code is "
            "missing from their figures."
        )
    figures = frontier_figures(plan.frontier, plan.certificate)
    table = frontier_table(plan.frontier, plan.certificate)
    return [element("p", about), element("div", figures, class_="plots"), table]


def _savings(plan: Compression, n_rows: int) -> list[Markup]:
    """A table with a line for ``n_rows`` and for each of `SHOWN_ROWS`, and the price that it assumes."""
    promise = plan.certificate
    counts = sorted({n_rows, *SHOWN_ROWS})
    caption = [
        element("strong", f"{_float_bytes(plan):,} bytes of float32 become {plan.bytes_per_row:,} bytes of code"),
        " Vectors alone, without ids or an index.",
        " The floats stay on disk for rescoring; the price of the disk is not included."
        if promise.keep_floats
        else None,
        " * estimated, not promised." if promise.keep_floats and counts[-1] > promise.n_database else None,
    ]
    heads = ["rows", "floats in memory", "codes in memory", "saved", "floats, $ a month", "codes, $ a month"]
    heads += ["floats on disk", "candidates"] if promise.keep_floats else []
    rows = [_savings_row(plan, count) for count in counts]
    price = (
        f"The price is ${DOLLARS_PER_GB:g} for a GiB of memory and month. It is an assumption: AWS r6g.large on demand "
        "(us-east-1) has 16 GiB for $0.1008 an hour."
    )
    return [plain_table("memory", caption, heads, rows, "Memory and money"), element("p", price)]


def _savings_row(plan: Compression, n_rows: int) -> Markup:
    promise = plan.certificate
    floats, codes = n_rows * _float_bytes(plan), n_rows * plan.bytes_per_row
    texts = [byte_size(floats), byte_size(codes), percent(1.0 - codes / floats, 3)]
    texts += [f"{size / 2**30 * DOLLARS_PER_GB:,.2f}" for size in (floats, codes)]
    if promise.keep_floats:
        candidates = f"{promise.depth_for(n_rows):,}"
        if n_rows > promise.n_database:
            candidates = ABSENT if promise.growth is None else f"about {candidates}*"
        texts += [byte_size(floats), candidates]
    return element("tr", element("th", f"{n_rows:,}", scope="row"), (element("td", text) for text in texts))


def _float_bytes(plan: Compression) -> int:
    """Bytes of the float vector that a code stands for."""
    return FLOAT_BYTES * int(plan.hasher.n_features_in_)


def _examples(plan: Compression, database: Contents, queries: Contents) -> list[Markup]:
    promise = plan.certificate
    parts = example_parts(plan, database, queries)
    half = sum(count for found, count in enumerate(promise.found) if 2 * found < promise.k)
    spread = (
        f"{promise.found[promise.k]:,} of {promise.n_testing:,} test queries found all {promise.k} of their neighbors; "
        f"{half:,} found fewer than half."
    )
    if plan.examples:
        spread += " The examples are those that lost most."
    elif promise.found[promise.k] < promise.n_testing:
        spread += " There are no examples, because files do not store them."
    return [element("p", spread), *parts]


def _settings(plan: Compression) -> list[Markup]:
    promise, depth = plan.certificate, hamming_depth(plan)
    others = "FAISS, pgvector and sqlite-vec search by Hamming distance"
    if depth is None:
        others += (
            ', for which this code cannot be promised to keep enough. Take compress(…, mode="hamming") for a code that '
            "they can search."
        )
    elif promise.keep_floats:
        others += (
            f". They keep {percent(promise.recall)} with {counted(depth, 'candidate')}, where they compare all codes. "
            f"This holds for {promise.n_database:,} rows; more rows need more candidates."
        )
    else:
        others += ". They keep the promise too, where they compare all codes."
    settings = [_setting(setting) for setting in hamming_settings(plan)]
    return [_setting(hashlearn_setting(plan)), element("h3", "Other engines"), element("p", others), *settings]


def _setting(setting: EngineSetting) -> Markup:
    title = element("h3", setting.engine, element("small", setting.about))
    return element("div", title, element("pre", setting.text, class_="copy", data_engine=setting.engine, tabindex=0))


def _coverage(promise: Certificate) -> list[Markup]:
    wrong = 1.0 - promise.confidence
    lines = [
        ("Queries like those tested. ", "Other kinds of questions can lose more."),
        ("This database. ", f"{promise.n_database:,} rows were searched; with more rows, more candidates are needed."),
        ("This model. ", "Codes of a model that is fitted again, or searched otherwise, need a new test."),
        (
            "The mean, not each query. ",
            f"A false promise passes the test with a probability of {percent(wrong)} at most.",
        ),
    ]
    versions = ", ".join(f"{name} {version}" for name, version in promise.versions.items())
    facts = {
        "model": promise.model,
        "data": promise.data,
        "queries": promise.queries,
        "seed": promise.seed,
        "made with": versions or None,
    }
    known = [(element("dt", name), element("dd", fact)) for name, fact in facts.items() if fact is not None]
    items = (element("li", element("strong", what), text) for what, text in lines)
    return [element("ul", items, class_="covers"), element("dl", known, class_="facts")]
