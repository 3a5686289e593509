"""`RankingHasher` on PyTorch tensors: trained where they are, with the codes of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hashers.supervised_laws import X, Y
from tests.hashers.test_ranking import DATABASE, NEW, quick, trained

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_give_the_codes_of_arrays(encoder, dtype):
    rows, asked = DATABASE.astype(dtype), X[800:900].astype(dtype)
    hasher = quick(encoder=encoder, n_steps=20).fit(torch.from_numpy(rows), Y[:800], queries=torch.from_numpy(asked))
    codes = hasher.encode(torch.from_numpy(rows))
    assert (type(codes), codes.dtype, tuple(codes.shape)) == (torch.Tensor, torch.uint8, (800, 2))
    np.testing.assert_array_equal(codes.numpy(), hasher.encode(rows))
    margins = hasher.decision_function(torch.from_numpy(rows))
    assert margins.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(margins.numpy(), hasher.decision_function(rows), atol=1e-4)
    of_arrays = quick(encoder=encoder, n_steps=20).fit(rows, Y[:800], queries=asked)
    assert hasher.ranking_report_.checks[0].recall == pytest.approx(of_arrays.ranking_report_.checks[0].recall)
    assert np.mean(hasher.transform(NEW) == of_arrays.transform(NEW)) > 0.95


def test_tensors_and_arrays_are_not_mixed():
    with pytest.raises(TypeError, match="queries must be of the kind of X, Tensor, got ndarray"):
        quick().fit(torch.from_numpy(DATABASE), queries=NEW)
    with pytest.raises(TypeError, match="float32 or float64"):
        quick().fit(torch.from_numpy(DATABASE).half())
    with pytest.raises(ValueError, match="queries has 5 features"):
        quick().fit(torch.from_numpy(DATABASE), queries=torch.from_numpy(NEW[:, :5].copy()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_training_on_a_gpu_gains_as_on_the_host():
    rows = torch.from_numpy(DATABASE.astype(np.float32)).cuda()
    hasher = trained(encoder="mlp").fit(rows, Y[:800], queries=rows[:100])
    assert hasher.encode(rows).device.type == "cuda"
    assert np.mean(hasher.transform(rows).cpu().numpy() == hasher.transform(DATABASE)) > 0.999
    first, last = hasher.ranking_report_.before, hasher.ranking_report_.after
    assert last.recall > first.recall + 0.02
    with pytest.raises(ValueError, match="queries must be on the device of X, cuda:0, got cpu"):
        trained().fit(rows, queries=torch.from_numpy(NEW))
