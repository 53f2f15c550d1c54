"""Minimise a smooth function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits
from torch import Tensor


def minimise_by_lbfgs(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """Minimise by SciPy's L-BFGS; torch's takes a second to import.

    Only one thread is used: steps are so small that several, of torch and of SciPy's BLAS, would
    mostly wait for one another.

    Args:
        loss: differentiable, of a tensor like `start`.
        start: where to begin, float64.
        steps: largest number of steps, all of which the Hessian estimate remembers.

    Returns:
        The minimiser, like `start`.
    """

    def with_slopes(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        place = torch.from_numpy(values).view_as(start).requires_grad_()
        value = loss(place)
        (slopes,) = torch.autograd.grad(value, place)
        return float(value.detach()), slopes.flatten().numpy()

    with threadpool_limits(1):
        found = minimize(
            with_slopes,
            start.flatten().numpy(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxcor": steps},
        )
    return torch.from_numpy(found.x).view_as(start)
