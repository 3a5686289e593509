"""Sizes at which another algorithm takes over, each with the measurement that set it."""

from __future__ import annotations

# On a device, solver="auto" relaxes samples of rows from this n on: 0.4 s against 34 s for 32 bits of 20,000 rows, at
# objectives 5e-5 apart (docs/gpu.md).
DEVICE_SAMPLE_ROWS = 10_000

# init="auto" takes a target for one of classes if its rank is at most this and half of the rows seen are repeats: codes
# of classes begin from PCA of the features, others from ITQ of the target's factor (docs/quality.md).
FEW_DISTINCT_RANK = 64
DISTINCT_ROWS_SEEN = 1024

# init="auto" fits the n_bits × n_bits rotation on a sample of this many rows: more change the objective by less than
# one part in a thousand (docs/scale.md).
ROTATION_ROWS = 20_000
