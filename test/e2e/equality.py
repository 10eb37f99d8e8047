"""Two runs of one model under different plans are equal up to reassociation.

The tolerances are three times what two correct float32 orders differ by, and no
more: a mean of means, a gradient counted twice or a dropped microbatch is far
outside of them.
"""

from __future__ import annotations

from typing import Callable, Tuple

import numpy as np

from harness import Checks, Run, Tensors

LOSS, NORM, WEIGHT = 1e-6, 1e-5, 1e-5  # loss and norm relative
FIRST_GRADIENT = 5e-5  # of the tensor's largest element
LATER_GRADIENT = 3e-5  # of the model's largest element
ZERO_GRADIENT = 1e-7  # absolute
# Adam divides by the gradient's size: where a gradient is only rounding error the
# first update is arbitrary, up to the learning rate. Weights, and with them later
# gradients, are not comparable then; losses and norms hardly notice.
ADAMW_LOSS, ADAMW_LATER_NORM = 1e-5, 5e-5

# Which elements of a parameter have no gradient: (name, shape) -> mask or scalar.
ZeroGradient = Callable[[str, Tuple[int, ...]], np.ndarray]


def _matched(checks: Checks, kind: str, actual: Tensors, expected: Tensors):
    checks.equal(f"{kind}: names", sorted(actual), sorted(expected))
    return [name for name in expected if name in actual]


def _check_gradients(checks: Checks, step: int, actual: Tensors, expected: Tensors, zero_gradient: ZeroGradient) -> None:
    largest = max((float(np.abs(gradient).max()) for gradient in expected.values()), default=0.0)
    for name in _matched(checks, f"gradients of step {step}", actual, expected):
        zero = np.broadcast_to(zero_gradient(name, expected[name].shape), expected[name].shape)
        if zero.any():
            checks.near("gradient that is zero", f"{name}, step {step}", actual[name], np.zeros(zero.shape), ZERO_GRADIENT, where=zero)
        if zero.all():
            continue
        if step == 1:
            own = float(np.abs(expected[name][~zero]).max())
            checks.near("first gradient", name, actual[name], expected[name], FIRST_GRADIENT, own, where=~zero)
        else:
            checks.near("later gradient", f"{name}, step {step}", actual[name], expected[name], LATER_GRADIENT, largest)


def check_equal(
    checks: Checks,
    run: Run,
    reference: Run,
    zero_gradient: ZeroGradient = lambda name, shape: np.False_,
    optimizer: str = "sgd",
    first_step: int = 1,
) -> None:
    """Adds every comparison of two runs that the plan may not change.

    `first_step` is the number of the runs' first entries: above 1 where they
    went on from unlike places.
    """
    sgd = optimizer == "sgd"
    checks.equal("steps", len(run.losses), len(reference.losses))
    for step, (actual, expected) in enumerate(zip(run.losses, reference.losses), first_step):
        checks.near("loss", f"step {step}", actual, expected, LOSS if sgd else ADAMW_LOSS, abs(expected))
    for step, (actual, expected) in enumerate(zip(run.norms, reference.norms), first_step):
        if sgd or step == 1:
            checks.near("gradient norm", f"step {step}", actual, expected, NORM, abs(expected))
        else:
            checks.near("later norm of AdamW", f"step {step}", actual, expected, ADAMW_LATER_NORM, abs(expected))
    for step, (actual, expected) in enumerate(zip(run.gradients, reference.gradients), first_step):
        if sgd or step == 1:
            _check_gradients(checks, step, actual, expected, zero_gradient)
    if sgd:
        for name in _matched(checks, "weights", run.weights, reference.weights):
            checks.near("weight", name, run.weights[name], reference.weights[name], WEIGHT)
