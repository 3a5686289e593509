"""What the codes should preserve: the matrix Y of eq. (3), always as an operator.

To add a target, write its file and one line in `TARGETS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.core.names import require_choice
from hashlearn.targets.base import Groups, Target, centered_unit_rows
from hashlearn.targets.labels import UNLABELED, Labels, LabelsAndNeighbors, SharedLabels
from hashlearn.targets.neighbors import Neighbors
from hashlearn.targets.similarities import Distance, Pairs, Similarity, ThresholdedDistance

__all__ = [
    "AUTOMATIC",
    "TARGETS",
    "UNLABELED",
    "Distance",
    "Groups",
    "Labels",
    "LabelsAndNeighbors",
    "Neighbors",
    "Pairs",
    "SharedLabels",
    "Similarity",
    "Target",
    "ThresholdedDistance",
    "as_target",
    "centered_unit_rows",
]

TARGETS: dict[str, type[Target]] = {
    "labels": Labels,
    "shared_labels": SharedLabels,
    "distance": Distance,
    "thresholded_distance": ThresholdedDistance,
    "neighbors": Neighbors,
    "labels_and_neighbors": LabelsAndNeighbors,
}
__all__ += sorted({kind.__name__ for kind in TARGETS.values()} - {*__all__})  # also those that the list does not name

# Names that mean labels if y is given, and this target otherwise.
AUTOMATIC: dict[str, type[Target]] = {"auto": Neighbors, "paper": ThresholdedDistance}


def as_target(target: Any, y: np.ndarray | None) -> Target:
    """A target object from a name or an n × n similarity; a target object is returned unchanged.

    "auto" is labels when y is given (shared labels when it is two-dimensional), else the neighbor graph; "paper" is
    the same with thresholded distance, the likely reading of the paper's experiments, in place of the graph.

    >>> [as_target(name, None).name for name in ("auto", "paper")]
    ['neighbors', 'thresholded_distance']
    >>> as_target("auto", np.array([0, 1])).name
    'labels'
    """
    if isinstance(target, str):
        require_choice(target, "target", [*AUTOMATIC, *TARGETS])
        if target not in AUTOMATIC:
            return TARGETS[target]()
        return AUTOMATIC[target]() if y is None else Labels() if y.ndim == 1 else SharedLabels()
    if isinstance(target, type):
        raise TypeError(f"target must be an object, not the class {target.__name__}; write {target.__name__}()")
    if isinstance(target, Target):
        return target
    if isinstance(target, np.ndarray | bqp.Operator) or sp.issparse(target):
        return Similarity(target)
    raise TypeError(f"target must be a name, a target object or an n × n similarity, got {type(target).__name__}")
