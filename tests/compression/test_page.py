"""The page of a promise: what it says, what it shows, what it escapes, and what it refuses."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from hashlearn.compression.engine_settings import engine_settings
from hashlearn.compression.page import verdict, write_page
from hashlearn.compression.result import Compression, Example
from tests.compression import plans


def page(plan: Compression, tmp_path: Path, **options: Any) -> str:
    """The text of a page, without line breaks between elements."""
    write_page(plan, tmp_path / "page.html", **options)
    return re.sub(r">\n+<", "><", (tmp_path / "page.html").read_text("utf-8"))


def test_a_kept_promise() -> None:
    assert verdict(plans.plan()) == (
        "No: 8 bytes a row (ranking_linear, asymmetric search) keep at least 95 % of the 10 nearest neighbors at 99 % "
        "confidence, if the original vectors are kept and the best 140 candidates are rescored with them."
    )
    assert verdict(plans.plan(keep_floats=False)).endswith("at 99 % confidence.")


def test_a_promise_that_is_not_kept_names_the_best() -> None:
    text = verdict(plans.plan(recall=0.98, promised=0.91199))
    assert text.startswith("Yes: A recall of 98 % cannot be promised with depth 200. The best: 8 bytes a row")
    assert "keep at least 91.199 %" in text  # 97.2 % were measured
    assert verdict(plans.plan(promised=0.91)).startswith("It may: A recall of 95 %")


def test_the_head_has_the_test_s_numbers_and_marks_estimates(tmp_path: Path) -> None:
    plan = plans.plan()
    text = page(plan, tmp_path, n_rows=3_000_000)
    depth = plan.certificate.depth_for(3_000_000)
    assert "97.2 %, mean of the test queries" in text
    assert "400 rows of X that were kept out of the database; 100 others chose the code" in text
    assert f"about {depth:,} candidates, estimated and not promised" in text
    assert f"<td>about {depth:,}*</td>" in text
    assert "400 queries of yours" in page(plans.plan(own_queries=True), tmp_path)
    assert "1,500 rows of the 9,000 that were given" in page(plans.plan(n_rows=9_000), tmp_path)
    assert "about" not in page(plans.plan(growth=None), tmp_path)


def test_memory_and_money(tmp_path: Path) -> None:
    def cells(text: str, n_rows: str) -> list[str]:
        row = re.search(rf'<th scope="row">{n_rows}</th>(.*?)</tr>', text)
        assert row is not None
        return [html.unescape(cell) for cell in re.findall("<td>(.*?)</td>", row[1])]

    text = page(plans.plan(), tmp_path)
    floats = 128e8 / 2**30
    assert cells(text, "100,000,000")[:5] == ["11.9 GiB", "763 MiB", "93.8 %", f"{4.6 * floats:.2f}", "3.43"]
    assert len(cells(text, "2,000")) == len(cells(text, "1,000,000")) == 7
    assert "It is an assumption: AWS r6g.large" in text
    alone = page(plans.plan(keep_floats=False), tmp_path)
    assert cells(alone, "100,000,000")[3:] == [f"{4.6 * floats:.2f}", "3.43"]


def test_every_row_of_the_frontier_is_in_the_table_and_the_chosen_one_is_marked(tmp_path: Path) -> None:
    text = page(plans.plan(), tmp_path)
    table = re.search(r'data-table="measured">(.*?)</table>', text)
    assert table is not None
    assert table[1].count("<tr>") == 1 + len(plans.frontier())
    assert table[1].count("✓ chosen") == 1
    kinds = [f"{what}-{mode}" for what in ("codes", "rescored") for mode in ("asymmetric", "hamming")]
    assert re.findall('data-plot="(.*?)"', text) == kinds
    assert text.count('class="ring"') == 2
    alone = page(plans.plan(keep_floats=False), tmp_path)
    assert re.findall('data-plot="(.*?)"', alone) == kinds[:2]


def test_names_and_texts_are_escaped_and_nothing_is_fetched(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    plan = replace(plans.plan(family=bad, versions={bad: bad}), frontier=(replace(plans.frontier()[0], family=bad),))
    text = page(plan, tmp_path, texts=[bad] * plans.N_ROWS, title=bad)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20
    assert "//" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"<link|<iframe|url\(|@import", text)


def test_examples_show_what_was_kept_lost_and_found_instead(tmp_path: Path) -> None:
    plan = replace(plans.plan(), examples=(Example(7, (1, 2, 3), (1, 3, 9)),))
    text = page(plan, tmp_path)
    plain = page(plan, tmp_path, texts=[f"text {row}." for row in range(plans.N_ROWS)])
    assert [re.findall(r"text (\d+)\.", part) for part in plain.split('class="found"')] == [
        ["7"],
        ["1", "3"],
        ["2"],
        ["9"],
    ]
    assert "rows 1, 3" in text
    assert "334 of 400 test queries found all 10 of their neighbors; 1 found fewer than half." in text
    pictures = page(plan, tmp_path, images=np.zeros((plans.N_ROWS, 4, 4), np.uint8))
    assert pictures.count("data:image/png") == 1 + 4
    asked = plans.plan(own_queries=True)
    own = page(replace(asked, examples=plan.examples), tmp_path, query_texts=[f"asked {i}" for i in range(8)])
    assert "asked 7" in own
    assert "because files do not store them" in page(replace(plan, examples=()), tmp_path)
    perfect = replace(plans.plan(found=(*[0] * 10, 400)), examples=())
    assert "400 of 400 test queries found all 10 of their neighbors; 0 found fewer than half.</p>" in page(
        perfect, tmp_path
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a"]}, "texts must have 2,000 entries, one for each row of X, got 1"),
        ({"query_texts": ["a"]}, "query_texts must be None, because the queries are rows of X"),
        ({"images": np.zeros((plans.N_ROWS, 4), np.uint8)}, r"images\[3\]: pixels must be uint8"),
        ({"n_rows": 0}, "n_rows must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input_is_named_and_the_old_page_stays(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    page(plans.plan(), tmp_path)
    before = (tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(ValueError, match=message):
        write_page(plans.plan(), tmp_path / "page.html", **options)
    assert (tmp_path / "page.html").read_text("utf-8") == before


def test_query_contents_must_reach_the_examples(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="query_texts must have at least 78 entries, got 5"):
        write_page(plans.plan(own_queries=True), tmp_path / "page.html", query_texts=["a"] * 5)


def test_the_page_says_what_other_engines_need(tmp_path: Path) -> None:
    plan = plans.plan()
    text = page(plan, tmp_path)
    assert "They keep 95 % with 312 candidates, where they compare all codes" in text
    engines = ["hashlearn", "FAISS", "PostgreSQL with pgvector", "SQLite with sqlite-vec"]
    assert re.findall('data-engine="(.*?)"', text) == engines
    for setting in engine_settings(plan).values():
        assert str(escape(setting)) in text
    assert "with 140 candidates" in page(plans.plan(mode="hamming"), tmp_path)
    alone = page(plans.plan(keep_floats=False, recall=0.6, promised=0.6), tmp_path)
    assert "They keep the promise too" in alone
    none = page(replace(plan, frontier=plans.without_depths()), tmp_path)
    assert "this code cannot be promised to keep enough" in none
    assert re.findall('data-engine="(.*?)"', none) == engines[:1]


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    plan = plans.plan()
    text = page(plan, tmp_path, texts=["one \ud800 half"] * plan.certificate.n_rows, title="\udfff")
    assert "one ? half" in text
