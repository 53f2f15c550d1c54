"""What classifiers see is learnt from the training part alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpntk.common.schema.columns.codes import MISSING
from dpntk.evaluate.tables.features import features_of
from tests.helpers.rows import table


def test_features_learn_from_the_training_part_alone() -> None:
    train = table([0, 10, 20, math.nan], [0, 1, 1, MISSING], [0, 0, 1, 1])
    test = table([40, math.nan], [2, 1], [0, 1])
    seen, unseen = features_of(train, test)
    # 0, 10, 20 and the mean 10 have mean 10 and deviation sqrt(50); 40 is 30 above that
    assert seen.scaled[:, 0] == pytest.approx(np.array([-10, 0, 10, 0]) / math.sqrt(50))
    assert unseen.scaled[:, 0] == pytest.approx([30 / math.sqrt(50), 0])
    assert seen.scaled[:, 1].tolist() == [0, 0, 0, 1]
    # missing, a, b: the training part has no c, so a test row of c has no feature of its own
    assert seen.scaled[:, 2:].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert unseen.scaled[:, 2:].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert seen.ordered.tolist() == [[0, 0, 0], [10, 0, 1], [20, 0, 1], [10, 1, MISSING]]
    assert unseen.ordered.tolist() == [[40, 0, 2], [10, 1, 1]]
