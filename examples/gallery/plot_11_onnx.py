"""
The same bits in ONNX
=====================

`export_onnx` writes an encoder that runs without hashlearn and without scikit-learn, in any language that onnxruntime
supports. Before it writes the file it compares the codes. Needs ``pip install '.[onnx]'``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.persistence import export_onnx

X, y = load_digits(return_X_y=True)
hasher = TwoStepHasher(n_bits=32, random_state=0).fit(X[:1200], y[:1200])
new, margins = X[1200:], hasher.decision_function(X[1200:])

# %%
# Two files: one computes in float64 as hashlearn does, one in float32. The 597 digits here were not learned from.

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
outputs, sizes = {}, {}
for dtype in ("float64", "float32"):
    path = Path(tempfile.mkdtemp()) / "encoder.onnx"
    export_onnx(hasher, path, sample=X[:300], dtype=dtype)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs[dtype] = session.run(["margins", "codes"], {"features": new.astype(dtype)})
    sizes[dtype] = path.stat().st_size

# %%
# A bit can change only if its margin changes by more than its size. Each point is a margin; those that do not differ
# at all are drawn at the bottom.

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
size = np.abs(margins).ravel()
differing = 0
for (dtype, (theirs, codes)), color in zip(outputs.items(), ["C0", "C1"], strict=True):
    difference = np.abs(theirs - margins).ravel()
    differing += (np.unpackbits(codes, axis=1) != np.unpackbits(hasher.encode(new), axis=1)).sum()
    axes.scatter(size, np.maximum(difference, 1e-18), s=3, color=color, alpha=0.25, linewidth=0)
    words, end = f"{dtype}: {sizes[dtype] / 1e3:,.0f} kB", (size.max(), np.median(difference))
    axes.annotate(words, end, (9, 0), textcoords="offset points", color=color, va="center")
limits = np.array([size.min(), size.max()])
axes.plot(limits, limits, color="C3", linewidth=1)
axes.annotate("here a bit would change", limits[[0, 0]], (0, 22), textcoords="offset points", color="C3")
axes.set(xscale="log", yscale="log", xlabel="size of the margin", ylabel="difference of the margin in ONNX")
axes.set_title(f"{differing} of {2 * size.size:,} bits differ between hashlearn and ONNX", loc="left")
plt.show()
