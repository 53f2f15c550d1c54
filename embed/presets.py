"""Networks that the paper's authors chose for their data sets, by the name of the set.

Yang et al., arXiv 2303.01687, Table 5; these three are also in the commands that come with their
code. They were tuned on the records of those sets: no guarantee covers what the choice of a preset
says about them. For any other data they are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "mnist": {"arch": "fc_1l", "width": "800", "front": "pixels"},
    "fashion-mnist": {"arch": "fc_1l", "width": "800", "front": "pixels"},
    "adult": {"arch": "cnn_2l", "width": "30_200"},
}
"""Options of `MapOptions`, where they differ from the defaults."""
