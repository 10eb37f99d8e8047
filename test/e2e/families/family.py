"""What a kind of models is: how it is built, fed and judged, at which size."""

from __future__ import annotations

import dataclasses
from typing import Callable, Dict, Tuple

import torch
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class Size:
    """The extents of a model and its example."""

    hidden: int = 32
    heads: int = 4
    layers: int = 2
    vocabulary: int = 67
    length: int = 10
    batch: int = 2

    @property
    def head(self) -> int:
        return self.hidden // self.heads


@dataclasses.dataclass(frozen=True)
class Family:
    build: Callable[[Size], nn.Module]
    inputs: Callable[[Size], Dict[str, Tensor]]
    labels: Callable[[Size, Tensor], Tensor]
    """From the outputs: their shape says what they are of."""
    loss: str = "cross-entropy"
    untrained: Tuple[str, ...] = ()
    """Parameters that no output depends on: their gradient is None."""
    shares: bool = False
    """Several modules read one parameter, which only who wrote them knows: those of `--shared`."""
    tables: Tuple[str, ...] = ()
    """Buffers that a compiler may take for parameters: those of `--constant`."""


# ===-- Inputs and labels ---------------------------------------------------===#


def tokens(size: Size, *shape: int) -> Tensor:
    return torch.randint(0, size.vocabulary, shape or (size.batch, size.length))


def ids(size: Size) -> Dict[str, Tensor]:
    return {"input_ids": tokens(size)}


def padding(size: Size) -> Tensor:
    """1 where there is a token; each sample is of another length."""
    lengths = torch.tensor([max(size.length - 3 * (b % 3), 2) for b in range(size.batch)])
    return (torch.arange(size.length)[None, :] < lengths[:, None]).long()


def padded_ids(size: Size) -> Dict[str, Tensor]:
    return {"input_ids": tokens(size), "attention_mask": padding(size)}


def classes(size: Size, outputs: Tensor) -> Tensor:
    """One class a row of the outputs, some of them ignored where there are many."""
    labels = torch.randint(0, outputs.shape[-1], outputs.shape[:-1])
    if labels.dim() > 1:
        labels[:, -2] = -100
    return labels


def numbers(size: Size, outputs: Tensor) -> Tensor:
    return torch.randn(outputs.shape)
