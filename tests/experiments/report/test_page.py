"""The whole page: complete, escaped, self-contained, and honest about what is not there."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hashlearn.experiments.bench.results import Failure, Results
from hashlearn.experiments.bench.tables import Cell
from hashlearn.experiments.report import results_page
from tests.experiments.report import synthetic

VOID = {"meta", "img", "br"}


class Structure(HTMLParser):
    """Checks that elements close in order; collects ids, links and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "srcset", "action"):
                self.addresses.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def structure(page: str) -> Structure:
    found = Structure()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    return synthetic.cells((("inference", "mnist"), ("knn", "cifar10")), draws=2)


@pytest.fixture(scope="module")
def page(cells: list[dict[str, Any]]) -> str:
    return results_page(synthetic.results(cells), paper_value=synthetic.paper_value)


def test_is_whole_and_self_contained(page: str) -> None:
    found = structure(page)
    assert "script" not in found.seen
    assert "link" not in found.seen
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in found.addresses)
    assert {address[1:] for address in found.addresses if address[0] == "#"} <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_every_value_stands_beside_the_papers(page: str) -> None:
    entries = re.findall(
        r'<td data-bits="(\d+) bits"><(?:span|strong) class="value">([\d.]+)</(?:span|strong)>'
        r'<span class="sd"> ± ([\d.]+)</span>'
        r'<span class="paper">paper ([\d.]+)</span><span class="verdict (\w+)">(.) ([+−]?[\d.]+) (\w+)</span>',
        page,
    )
    assert len(entries) == 4 * 4 + 4 * 3
    for _, ours, deviation, paper, kind, sign, difference, word in entries:
        shown = float(difference.replace("−", "-"))
        assert shown == pytest.approx(float(ours) - float(paper), abs=0.011)
        assert kind == word
        assert sign == {"better": "▲", "within": "≈", "worse": "▼"}[word]
        assert float(deviation) == pytest.approx(0.5 / 2**0.5, abs=0.01)
    by_place = {(entry[0], entry[3]): entry[4] for entry in entries}
    assert by_place["8", f"{synthetic.paper_value('inference', 'mnist', 'AL', 8):.2f}"] == "better"
    assert by_place["32", f"{synthetic.paper_value('inference', 'mnist', 'GraphCut', 32):.2f}"] == "worse"


def test_one_figure_of_each_kind_for_each_table(page: str) -> None:
    kinds = re.findall(r'data-plot="(\w+)"', page)
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "map": 2,
        "curve": 4 + 3,
        "bound": 2,
    }
    tables = re.findall(r'data-table="(\w+)"', page)
    assert {name: tables.count(name) for name in ("results", "map", "bits", "seconds", "glance")} == {
        "results": 2, "map": 2, "bits": 2, "seconds": 2, "glance": 1,
    }  # fmt: skip


def test_names_and_labels_are_escaped(cells: list[dict[str, Any]]) -> None:
    evil = '</script><img src=x onerror="alert(1)">&amp;\'"'
    poisoned = copy.deepcopy(cells[:8] + cells[-6:])
    for cell in poisoned:
        cell["cell"]["method"] += evil
        cell["cell"]["dataset"] += evil
        cell["cell"]["features"] = evil
        cell["configuration"]["parameters"][evil] = evil
        cell["machine"]["processor"] = evil
        cell["provenance"]["source"] = evil
        cell["provenance"]["files"] = [{"path": evil, "sha256": evil}, evil]
        cell["digest"] = evil
        for query in (cell["gallery"] or {"queries": []})["queries"]:
            query["label"] = evil
            for neighbor in query["neighbors"]:
                neighbor["label"] = evil
    text = results_page(synthetic.results(poisoned), title=evil, paper_value=synthetic.paper_value)
    found = structure(text)
    assert evil not in text
    assert "script" not in found.seen
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in found.addresses)


def test_missing_cells_are_listed_with_the_reason(cells: list[dict[str, Any]]) -> None:
    records = {Cell(**{name: cell["cell"][name] for name in Cell.__dataclass_fields__}): cell for cell in cells}
    pairs = [("BRE", 8), ("BRE", 16), ("KSH", 8), ("AL", 8)]
    keys = tuple(Cell("inference", "mnist", method, n_bits, 0) for method, n_bits in pairs)
    failures = {keys[2]: Failure("MemoryError: <too much>", Path("8-0.error.json"))}
    requests = synthetic.results(cells).requests
    results = Results(Path("/somewhere/private/my results"), records, keys, failures, requests)
    text = results_page(results, paper_value=synthetic.paper_value)
    rows = re.findall(r"<tr><th scope=\"row\">(\w+)</th><td>inference, MNIST</td>(.*?)</tr>", text)
    assert [
        (name, re.sub("(<.*?>)+", lambda tags: "||" if "</td><td>" in tags[0] else "|", rest)) for name, rest in rows
    ] == [
        ("BRE", "|2 cells| at 8 and 16 bits||not run yet|"),
        ("KSH", "|1 cell| at 8 bits||failed: MemoryError: &lt;too much&gt;|"),
        ("AL", "|1 cell| at 8 bits||not run yet|"),
    ]
    assert "private" not in text
    assert "--out &#39;my results&#39;" in text


def test_commands_measure_every_cell_again(page: str) -> None:
    (block,) = re.findall(r'<pre data-part="commands">(.*?)</pre>', page)
    assert re.findall("<code>(.*?)</code>", block) == [
        "hashlearn bench inference --dataset mnist --methods SDR,AL,NOPT,GraphCut --bits 8,16,24,32 --draws 2"
        " --out results",
        "hashlearn bench knn --dataset cifar10 --methods SDR,AL,NMF,ALM --bits 8,16,32 --draws 2 --out results",
        "hashlearn report results -o report.html",
    ]


def test_provenance_tells_machines_files_digests_and_warnings(cells: list[dict[str, Any]]) -> None:
    mixed = copy.deepcopy(cells)
    mixed[0]["machine"] |= {"processor": "Another", "cores": 64}
    mixed[1]["warnings"] = mixed[2]["warnings"] = ["ConvergenceWarning: a < b"]
    text = results_page(synthetic.results(mixed), paper_value=synthetic.paper_value)
    made = re.findall(
        r"<dt>made</dt><dd>(.*?)</dd>.*?<dt>processor</dt><dd>(.*?)</dd><dt>cores</dt><dd>(\d+)</dd>", text
    )
    assert made == [("1 cell", "Another", "64"), (f"{len(cells) - 1} cells", "Some Processor", "2")]
    assert f"sha256 {'4' * 64}" in text
    assert '<td>2 cells</td><td class="long">ConvergenceWarning: a &lt; b</td>' in text
    assert "Warnings" not in results_page(synthetic.results(cells), paper_value=synthetic.paper_value)


def test_a_cell_with_nothing_but_its_key_still_makes_a_page() -> None:
    key = {"table": "inference", "dataset": "mine", "method": "M", "n_bits": 8, "draw": 0}
    text = results_page(
        synthetic.results([{"cell": key, "metrics": {"precision@2": None, "map": None}}]), paper_value=lambda *key: None
    )
    structure(text)
    assert "not run" in text
    assert "data-plot" not in text
    assert 'id="gallery"' not in text


def test_no_cells_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        results_page(synthetic.results([]), paper_value=synthetic.paper_value)


@pytest.mark.parametrize("palette", [0, 1], ids=["light", "dark"])
def test_colors_keep_their_contrast(page: str, palette: int) -> None:
    roots = re.findall(r":root {(.*?)}", page, flags=re.DOTALL)
    assert len(roots) == 2
    colors = dict(re.findall(r"--([\w-]+): (#\w{6})", roots[palette]))
    paper, card = colors["paper"], colors["card"]
    assert all(_contrast(colors[f"s{i}"], paper) >= 3.0 for i in range(1, 9))
    assert all(_contrast(colors[name], ground) >= 4.5 for name in ("ink", "dim", "link") for ground in (paper, card))
    assert all(_contrast(colors[word], colors[f"{word}-paper"]) >= 4.5 for word in ("better", "within", "worse"))


def _contrast(one: str, other: str) -> float:
    """Ratio of relative luminances, as WCAG 2 defines it."""
    light = []
    for colour in (one, other):
        parts = [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)
