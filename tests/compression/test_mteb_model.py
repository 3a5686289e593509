"""`MtebModel`: signs and margins for mteb, and scores of its own evaluator that are those of a direct computation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import bits
from hashlearn.compression import MtebModel
from hashlearn.hashers import ITQ
from hashlearn.search import asymmetric_search
from tests.compression.mteb_tasks import Trigrams, local_task

TOPICS = {
    "money": "transfer money to my savings account at the bank",
    "travel": "book a flight and a hotel for my holiday",
    "food": "find a recipe for soup with fresh tomatoes",
    "weather": "will it rain or snow in the mountains tomorrow",
}
WORDS = [
    "please",
    "quickly",
    "today",
    "for my mother",
    "again",
    "if possible",
    "now",
    "before noon",
    "thanks",
    "kindly",
]
CORPUS = {
    f"{topic}-{place}": f"{word} {' '.join(text.split()[place % 3 : 6 + place % 4])}"
    for topic, text in TOPICS.items()
    for place, word in enumerate(WORDS)
}
QUERIES = {f"q-{topic}": " ".join(text.split()[2:]) for topic, text in TOPICS.items()}
RELEVANT = {f"q-{topic}": {key: 1 for key in CORPUS if key.startswith(topic)} for topic in TOPICS}
DOCUMENTS, ASKED = Trigrams().encode(list(CORPUS.values())), Trigrams().encode(list(QUERIES.values()))
HASHER = ITQ(n_bits=12, random_state=0).fit(DOCUMENTS)


def batches(texts: dict[str, str]) -> list[dict[str, list[str]]]:
    """As a data loader gives them."""
    found = list(texts.values())
    return [{"text": found[first : first + 7]} for first in range(0, len(found), 7)]


def ndcg_at_10(scores: Any) -> float:
    """Mean share of the best possible discounted gain; equal scores by descending id, as trec_eval does."""
    discounts = 1.0 / np.log2(np.arange(2, 12))
    found = []
    for row, relevant in zip(np.asarray(scores), RELEVANT.values(), strict=True):
        ranking = sorted(zip(row.tolist(), CORPUS, strict=True), reverse=True)[:10]
        gains = np.array([relevant.get(key, 0) for _, key in ranking])
        found.append((gains * discounts).sum() / discounts[: len(relevant)].sum())
    return float(np.mean(found))


def test_signs_rank_as_hamming_distance_does() -> None:
    pytest.importorskip("torch")
    model = MtebModel(Trigrams(), HASHER)
    queries, documents = model.encode(batches(QUERIES), prompt_type="query"), model.encode(batches(CORPUS))
    assert (documents.dtype, documents.shape) == (np.float32, (40, 12))
    distances = bits.hamming_distances(HASHER.encode(ASKED), HASHER.encode(DOCUMENTS))
    similarity = model.similarity(queries, documents)
    np.testing.assert_array_equal(similarity.numpy(), 12 - 2 * distances)
    np.testing.assert_array_equal(model.similarity(queries[0], documents).numpy(), similarity.numpy()[:1])
    pairwise = model.similarity_pairwise(queries, documents[:4]).numpy()
    np.testing.assert_array_equal(pairwise, np.diag(similarity.numpy()[:, :4]))


def test_only_queries_keep_their_margins() -> None:
    pytest.importorskip("torch")
    model = MtebModel(Trigrams(), HASHER, asymmetric=True)
    documents = model.encode(batches(CORPUS), prompt_type="document", task_metadata=None, hf_split="", hf_subset="")
    np.testing.assert_array_equal(documents, MtebModel(Trigrams(), HASHER).encode(batches(CORPUS)))
    margins = model.encode(batches(QUERIES), prompt_type="query")
    np.testing.assert_array_equal(margins, HASHER.decision_function(ASKED).astype(np.float32))
    found = asymmetric_search(HASHER.decision_function(ASKED), HASHER.encode(DOCUMENTS), k=40)
    scores = np.take_along_axis(model.similarity(margins, documents).numpy(), found.indices, axis=1)
    np.testing.assert_allclose(scores, found.scores, atol=1e-5)


def test_a_model_of_mteb_gets_the_settings_of_mteb() -> None:
    seen = {}

    class Base:
        mteb_model_meta = None

        def encode(self, inputs: Any, **settings: Any) -> Any:
            seen.update(settings)
            return DOCUMENTS

    assert MtebModel(Base(), HASHER).encode([], prompt_type="query", batch_size=5, hf_split="test").shape == (40, 12)
    assert seen == {"prompt_type": "query", "batch_size": 5, "hf_split": "test"}


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(TypeError, match=r"encoder must be a model with a method encode\(texts\), got 'all-M"):
        MtebModel("all-MiniLM-L6-v2", HASHER)
    with pytest.raises(TypeError, match=r"hasher must be a fitted hasher, .* got str"):
        MtebModel(Trigrams(), "model.hashlearn")
    with pytest.raises(ValueError, match="not fitted"):
        MtebModel(Trigrams(), ITQ(n_bits=8))


@pytest.mark.parametrize("asymmetric", [False, True])
def test_mteb_gives_the_ndcg_of_a_direct_computation(asymmetric: bool, tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb")
    task, model = local_task(CORPUS, QUERIES, RELEVANT), MtebModel(Trigrams(), HASHER, asymmetric=asymmetric)
    (result,) = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results
    codes = bits.bits_to_signs(HASHER.transform(DOCUMENTS)).astype(np.float32)
    margins = HASHER.decision_function(ASKED).astype(np.float32)
    direct = ndcg_at_10((margins if asymmetric else np.where(margins >= 0, 1, -1)) @ codes.T)
    scored = result.get_score()
    assert scored == pytest.approx(direct, abs=1e-5)
    assert 0.3 < scored <= ndcg_at_10(ASKED @ DOCUMENTS.T)


def test_floats_are_scored_at_least_as_high_by_mteb() -> None:
    mteb = pytest.importorskip("mteb")

    class Floats(MtebModel):
        def encode(self, inputs: Any, **settings: Any) -> Any:
            return self.encoder.encode([text for batch in inputs for text in batch["text"]])

    task = local_task(CORPUS, QUERIES, RELEVANT)
    scores = [
        mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results[0].get_score()
        for model in (Floats(Trigrams(), HASHER), MtebModel(Trigrams(), HASHER))
    ]
    assert scores[0] == pytest.approx(ndcg_at_10(ASKED @ DOCUMENTS.T), abs=1e-5)
    assert scores[0] >= scores[1]


def test_stored_results_of_two_hashers_are_kept_apart(tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb")
    cache, task = mteb.ResultCache(cache_path=tmp_path), local_task(CORPUS, QUERIES, RELEVANT)
    longer = ITQ(n_bits=24, random_state=0).fit(DOCUMENTS)
    models = [
        MtebModel(Trigrams(), HASHER),
        MtebModel(Trigrams(), longer),
        MtebModel(Trigrams(), HASHER, asymmetric=True),
    ]
    for model in models:
        stored = mteb.evaluate(model, task, cache=cache, show_progress_bar=False).task_results[0].get_score()
        alone = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results[0].get_score()
        assert stored == alone
        assert model.mteb_model_meta.embed_dim == model.hasher.n_bits
    assert len({model.mteb_model_meta.experiment_name for model in models}) == 3


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mteb")
    monkeypatch.chdir(tmp_path)

    class Wider(Trigrams):
        n_columns = 64

    page = (Path(__file__).parents[2] / "docs" / "mteb.md").read_text("utf-8")
    _, example = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    texts = [f"{document} {query}" for document in CORPUS.values() for query in QUERIES.values()]
    names = {"text_model": Wider(), "task": local_task(CORPUS, QUERIES, RELEVANT), "texts": texts}
    exec(compile(example, "docs/mteb.md", "exec"), names)
    assert len(names["scores"]) == 2
    assert all("n_bits_64" in name and 0.5 < score <= 1.0 for name, score in names["scores"].items())
    assert len([*(tmp_path / "results").rglob("LocalRetrieval.json")]) == 2
