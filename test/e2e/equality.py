"""Two runs of one model under different plans are equal up to reassociation.

The tolerances are three times what two correct float32 orders differ by, and no
more: a mean of means, a gradient counted twice or a dropped microbatch is far
outside of them.
"""

from __future__ import annotations

from typing import Callable, List, Optional

import numpy as np

from harness import Checks, Run, Tensors

LOSS, NORM, WEIGHT = 1e-6, 1e-5, 1e-5
FIRST_GRADIENT, ZERO_GRADIENT = 5e-5, 1e-7
ADAMW_LOSS = 1e-5


def _matched(checks: Checks, kind: str, actual: Tensors, expected: Tensors):
    checks.equal(f"{kind}: names", sorted(actual), sorted(expected))
    return [name for name in expected if name in actual]


def check_equal(
    checks: Checks,
    run: Run,
    reference: Run,
    zero_gradient: Callable[[str], bool] = lambda name: False,
    optimizer: str = "sgd",
    norms: Optional[List[float]] = None,
    reference_norms: Optional[List[float]] = None,
) -> None:
    """Adds every comparison of two runs that the plan may not change."""
    checks.equal("steps", len(run.losses), len(reference.losses))
    for step, (actual, expected) in enumerate(zip(run.losses, reference.losses), 1):
        checks.near("loss", f"step {step}", actual, expected, LOSS if optimizer == "sgd" else ADAMW_LOSS, abs(expected))
    # After Adam's first step weights differ where a gradient is noise, and so do
    # later norms; losses hardly.
    compared = None if optimizer == "sgd" else 1
    for step, (actual, expected) in enumerate(list(zip(norms or [], reference_norms or []))[:compared], 1):
        checks.near("gradient norm", f"step {step}", actual, expected, NORM, abs(expected))
    for name in _matched(checks, "gradients", run.gradients, reference.gradients):
        expected = reference.gradients[name]
        if zero_gradient(name):
            checks.near("gradient that is zero", name, run.gradients[name], np.zeros_like(expected), ZERO_GRADIENT)
        else:
            checks.near("gradient", name, run.gradients[name], expected, FIRST_GRADIENT, float(np.abs(expected).max()))
    if optimizer == "sgd":  # Adam amplifies rounding where a gradient is noise
        for name in _matched(checks, "weights", run.weights, reference.weights):
            checks.near("weight", name, run.weights[name], reference.weights[name], WEIGHT)
