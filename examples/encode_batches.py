"""Encode rows in the workers of Ray, Spark, DuckDB or Polars: each process loads the model file once.

ray.data.read_parquet("rows/").map_batches(encode_batch).write_parquet("codes/")
spark.read.parquet("rows/").mapInPandas(encode_frames, "id string, code binary").write.parquet("codes/")
"""

from functools import cache

import numpy as np

from hashlearn import load

model = cache(load)  # by path


def encode_batch(batch, path="model.hashlearn"):
    """A dict of arrays, with packed codes as bytes in the column "code" in place of the vectors in "x"."""
    codes = model(path).encode(np.stack(batch["x"]))
    return {name: batch[name] for name in batch if name != "x"} | {"code": [code.tobytes() for code in codes]}


def encode_frames(frames, path="model.hashlearn"):
    """The same for an iterator of pandas frames with the columns "id" and "x"."""
    for frame in frames:
        yield frame.drop(columns="x").assign(code=encode_batch({"x": frame["x"]}, path)["code"])
