//===- Passes.td - the passes of the Plan phase, in order -----*- tablegen -*-===//

#ifndef AUTOHET_PASSES_PLAN
#define AUTOHET_PASSES_PLAN

include "mlir/Pass/PassBase.td"

def AssignStages : Pass<"dist-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Cut the model into the stages of a plan";
  let description = [{
    *Requires:* the differentiated model, one function a microbatch size of the
    plan (`het.batch_size`), its ops numbered into units (`het.units`); a plan: the module's
    `dist.plan`, or `stages` in the short form of parseStageAssignment. The module's
    `dist.nodes`, if there, are the names of the cluster's nodes.

    *Does:* makes a function a stage and replica. An op goes where its unit is;
    parameters, and chains from inputs without parameters (unit `inputs`), are
    repeated where they are read. A value that another stage reads crosses by
    `dist.send` and `dist.recv`, in forward as in backward. Ranks are those of the
    devices in use, by node in the order of `dist.nodes` (then of the plan) and by
    index within a node.

    *Ensures:* every op is in exactly one stage a replica; functions with
    `#dist.stage` and no model function are left. A plan that does not fit the
    model is an error.

    ```mlir
    %1 = het.gelu tanh %0 {het.unit = "block0.mlp"} : ...      // block0 on stage 0
    %2 = het.neg %1 {het.unit = "block1.attn"} : ...           // block1 on stage 1
    // becomes, in @r0.s0:  dist.send %1 to 1 channel 0 : ...
    //          in @r0.s1:  %1 = dist.recv from 0 channel 0 : ...
    ```
  }];
  let options = [
    Option<"stages", "stages", "std::string", "\"\"",
           "Stages in the short form, e.g. \"embed-block0@n0/0, block1-head@n1/0\"">,
    Option<"globalBatch", "global-batch", "int64_t", "0",
           "With `stages`: samples a step (0: what the replicas add up to)">,
  ];
  let dependentDialects = ["::autohet::dist::DistDialect"];
}

def ShardStages : Pass<"dist-shard-stages", "::mlir::ModuleOp"> {
  let summary = "Make each device's function from its stage";
  let description = [{
    *Requires:* functions with `#dist.stage`.

    *Does:* on a stage of one device, only transfers change. On several, heads
    of attention (also of one that is spelled out), hidden elements of the MLP
    (also of experts) and the vocabulary are divided in proportion to the
    weights; other ops follow their operands by their sharding
    rules. A partial sum that is read whole is summed in rank order (the same
    on every rank; a large one among three or more ranks in slices, each by one
    rank); what is split and read whole is gathered. What several readers ask
    for is made once.

    *Ensures:* one function a device, with `#dist.program`, on local tensors;
    transfers name ranks.

    ```mlir
    %y = het.matmul %x, %w contract [2] [0] : (tensor<2x5x8xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
    // on two ranks of weights 2:1, w divided by columns:
    %y = het.matmul %x, %w contract [2] [0] : (tensor<2x5x8xf32>, tensor<8x4xf32>) -> tensor<2x5x4xf32>
    %y = het.matmul %x, %w contract [2] [0] : (tensor<2x5x8xf32>, tensor<8x2xf32>) -> tensor<2x5x2xf32>
    ```
  }];
  let dependentDialects = ["::autohet::dist::DistDialect"];
}

def SynchronizeGradients : Pass<"dist-synchronize-gradients", "::mlir::ModuleOp"> {
  let summary = "Sum gradients at their owners and spread what they update";
  let description = [{
    *Requires:* functions with `#dist.program`; gradients end in `het.gradient`.

    *Does:* cuts each parameter into the common refinement of all devices'
    boxes. Every slice has one owner among its holders; one that is more than
    their fair share is cut into rows first, so that state and updates are
    balanced, or in the parts that `state-shares` wants. Slices of equal holders,
    contributors and owner form buckets, each one message a direction. Rows of
    a box that lie in one piece are sent and received where they lie; other
    slices are cut out and put together. Holders
    send their part of the gradient to the owner, which adds the parts in rank
    order, counts the slices in the norm, updates after the agreement, and sends
    the new bytes to the other holders. With `exchange=hierarchical`, a relay in
    each other node adds its node's parts first, and passes new bytes on there:
    links between nodes carry a slice once and not once a device. Ops with `het.phase = "reduce"` start a
    bucket's messages among the backward ops, where its last gradient is
    complete: they run in the last microbatch's backward only.

    *Ensures:* every trained parameter that a device holds is updated by exactly
    one owner; all holders end a step with equal bytes.

    ```mlir
    het.gradient "w" %g : tensor<8x6xf32>
    // one device:
    %0 = dist.local_gradient "w" at [0, 0] of [8, 6] : tensor<8x6xf32>
    dist.norm %0 : tensor<8x6xf32>
    dist.agree
    %1 = dist.update "w" at [0, 0] of [8, 6] by %0 : tensor<8x6xf32>
    dist.store_parameter "w" %1 at [0, 0] of [8, 6] : tensor<8x6xf32>
    ```
  }];
  let options = [
    Option<"stateOwner", "state-owner", "std::string", "\"spread\"",
           "Who updates a slice: spread (over its holders, by bytes), first, or a device">,
    ListOption<"stateShares", "state-shares", "std::string",
               "DEVICE=N: its share in state that is spread, otherwise 1; 0: owns nothing that others hold">,
    Option<"exchange", "exchange", "std::string", "\"direct\"",
           "Ways of gradients and new parameters: direct, or hierarchical (one message of a slice a node)">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "kBucketBytes",
           "Most bytes that one message of gradients or parameters carries, unless one slice has more">,
  ];
  let dependentDialects = ["::autohet::dist::DistDialect"];
}

#endif
