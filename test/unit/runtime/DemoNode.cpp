//===- DemoNode.cpp - a node's executable without a compiler ----------------===//
//
// The linear model on two uneven replicas of one node, linked as the compiler
// links a node: runtime, main, image. NodeTest starts it.
//
//===----------------------------------------------------------------------===//

#include "ReplicaModel.h"

using namespace autohet::runtime::test;

static Replica replicas[2] = {{0, 3, 0, AH_ADAMW}, {1, 1, 3, AH_ADAMW}};
static const ah_device_image devices[2] = {replicas[0].build(),
                                           replicas[1].build()};

extern const ah_node_image autohet_node_image;
const ah_node_image autohet_node_image = {
    R"({"format": 1, "name": "demo", "structure_hash": "0000000000000000",
        "plan_hash": "0000000000000001", "program_hash": "0000000000000002",
        "weights_index": "weights.index", "global_batch": 4,
        "nodes": [{"name": "n0", "executable": "DemoNode"}],
        "ranks": [{"node": 0, "device": 0}, {"node": 0, "device": 1}]})",
    devices, 2, 0, 1};
