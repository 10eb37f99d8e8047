"""Plans by hand: uneven in every way that a mixed cluster makes them.

A plan here is written in blocks ("3 blocks, then 5"); which units of a model
these are, its own unit table says (`autohet-compile --emit=units`).
"""

from __future__ import annotations

import dataclasses
import json
from typing import Dict, List, Optional, Sequence

GLOBAL_BATCH = 8


@dataclasses.dataclass
class Stage:
    """`blocks` of the model on as many devices as `shares` has entries."""

    blocks: int
    shares: Sequence[int] = (1,)
    state_share: int = 1  # of spread state, beside other holders
    embedding: bool = False  # also what comes before the first block
    head: bool = False  # also what comes after the last one


@dataclasses.dataclass
class Replica:
    microbatch_size: int
    microbatches: int
    stages: List[Stage]


def pipeline(cuts: Sequence[int], extents: Optional[Sequence[Sequence[int]]] = None) -> List[Stage]:
    """Stages of so many blocks each; embedding and head are with the outer ones."""
    stages = [Stage(blocks, (extents or [(1,)] * len(cuts))[i]) for i, blocks in enumerate(cuts)]
    stages[0].embedding = stages[-1].head = True
    return stages


def equal(extent: int) -> List[int]:
    return [1] * extent


# Every model has eight blocks.
PLANS: Dict[str, List[Replica]] = {
    "pipeline2": [Replica(2, 4, pipeline([3, 5]))],
    "pipeline3": [Replica(1, 8, pipeline([2, 5, 1]))],
    # The embedding alone, the head alone.
    "pipeline3-ends": [Replica(2, 4, pipeline([0, 8, 0]))],
    "tensor2": [Replica(4, 2, pipeline([8], [equal(2)]))],
    "tensor3": [Replica(8, 1, pipeline([8], [equal(3)]))],
    "extents-2-1": [Replica(2, 4, pipeline([5, 3], [equal(2), equal(1)]))],
    "extents-1-2": [Replica(2, 4, pipeline([2, 6], [equal(1), [2, 1]]))],
    "extents-4-1-2-1": [Replica(1, 8, pipeline([3, 1, 3, 1], [equal(4), equal(1), equal(2), equal(1)]))],
    "replicas-unlike-depths": [Replica(1, 3, pipeline([3, 5])), Replica(1, 5, pipeline([4, 4]))],
    "replicas-tensor2-tensor1": [Replica(2, 3, pipeline([8], [equal(2)])), Replica(2, 1, pipeline([8]))],
    "replicas-microbatch-4-2": [Replica(4, 1, pipeline([8])), Replica(2, 2, pipeline([6, 2]))],
    # Fewer microbatches than stages: the steady loop has no trip.
    "microbatches2-stages3": [Replica(4, 2, pipeline([3, 3, 2]))],
    # Several holders in each of two nodes, not as many, of unlike slices.
    "replicas-in-nodes": [
        Replica(1, 2, pipeline([8])),
        Replica(2, 1, pipeline([8])),
        Replica(1, 2, pipeline([3, 5])),
        Replica(1, 2, pipeline([8])),
    ],
    # Who owns state is not who computes: one replica owns nothing, and of two
    # stages one three times as much as the third replica.
    "state-shares": [
        Replica(2, 1, [Stage(8, state_share=0, embedding=True, head=True)]),
        Replica(1, 3, [Stage(3, [1, 1], state_share=3, embedding=True), Stage(5, state_share=2, head=True)]),
        Replica(1, 3, pipeline([8])),
    ],
    "all-at-once": [
        Replica(2, 3, pipeline([0, 5, 3], [equal(1), [2, 1], equal(1)])),
        Replica(1, 2, pipeline([6, 2], [equal(1), equal(2)])),
    ],
}


def split_units(units: Sequence[str]) -> List[List[str]]:
    """[before the first block, block 0, ..., after the last], in order."""
    blocks: Dict[str, List[str]] = {}
    before: List[str] = []
    after: List[str] = []
    for unit in units:
        prefix = unit.split(".")[0]
        if prefix.startswith("block"):
            blocks.setdefault(prefix, []).append(unit)
        else:
            (after if blocks else before).append(unit)
    return [before, *blocks.values(), after]


def plan_json(replicas: Sequence[Replica], units: Sequence[str], optimizer: str, schedule: str = "1f1b", nodes: int = 2, exchange: str = "direct") -> dict:
    """The plan file; devices are dealt out in order, over `nodes` nodes."""
    before, *blocks, after = split_units(units)
    names = iter(device_names(node_sizes(device_count(replicas), nodes)))
    written = []
    for replica in replicas:
        rest, stages = list(blocks), []
        for stage in replica.stages:
            taken, rest = rest[: stage.blocks], rest[stage.blocks :]
            members = (before if stage.embedding else []) + [u for block in taken for u in block] + (after if stage.head else [])
            entry = {"units": members, "devices": [next(names) for _ in stage.shares]}
            if len(set(stage.shares)) > 1:
                entry["tensor_parallel"] = list(stage.shares)
            if stage.state_share != 1:
                entry["state_share"] = stage.state_share
            stages.append(entry)
        assert not rest, "a plan of %d blocks for a model of %d" % (len(blocks) - len(rest), len(blocks))
        written.append({"microbatch_size": replica.microbatch_size, "microbatches": replica.microbatches, "stages": stages})
    return {
        "format": 1,
        "global_batch": sum(r.microbatch_size * r.microbatches for r in replicas),
        "optimizer": optimizer,
        "schedule": schedule,
        "gradient_exchange": exchange,
        "replicas": written,
    }


def device_count(replicas: Sequence[Replica]) -> int:
    return sum(len(stage.shares) for replica in replicas for stage in replica.stages)


def node_sizes(devices: int, nodes: int) -> List[int]:
    nodes = min(nodes, devices)
    return [devices // nodes + (node < devices % nodes) for node in range(nodes)]


def device_names(sizes: Sequence[int]) -> List[str]:
    return ["n%d/%d" % (node, index) for node, size in enumerate(sizes) for index in range(size)]


def cluster_yaml(devices: int, nodes: int = 2, sizes: Sequence[int] = ()) -> str:
    """All on this machine: a node without an address is. `sizes`: devices a node, if not even."""
    lines = [
        "format: 1",
        "kinds:",
        "  cpu: {memory: 1 GiB, flops: 10 GFLOP/s}",
        "  slow: {memory: 1 GiB, flops: 4 GFLOP/s}",
        "nodes:",
    ]
    for node, size in enumerate(sizes or node_sizes(devices, nodes)):
        kind = "slow" if node % 2 else "cpu"
        lines.append("  - {name: n%d, devices: [{kind: %s, count: %d}]}" % (node, kind, size))
    lines += [
        "links:",
        "  intra_node: {bandwidth: 4 GB/s, latency: 20 us}",
        "  inter_node: {bandwidth: 1 GB/s, latency: 50 us}",
    ]
    return "\n".join(lines) + "\n"


def write_plan(path: str, plan: dict) -> None:
    with open(path, "w") as file:
        json.dump(plan, file, indent=1)
