"""The regions that nodes were laid out in."""

import dataclasses
from typing import Any

import numpy as np

from mrgp.supports.support import Support


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """The regions that nodes stand for, for overlaps; arithmetic never sees them.

    They are regions of the first inputs of the nodes; covariates come after those. Origins are
    equal where they are the same object.
    """

    regions: Support

    def __getitem__(self, index: Any) -> "Origin":
        # Indices are traced only where arrays are, and moved copies, whose arrays are, have none.
        return Origin(self.regions[index if isinstance(index, slice) else np.asarray(index)])
