// Plans that do not fit the model, each with its reason.
//
// RUN: not autohet-opt %s --dist-assign-stages 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not autohet-opt %s --dist-assign-stages=stages='embed@' 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not autohet-opt %s --dist-assign-stages=stages='2x0:embed-head@n0/0' 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x3:embed-head@n0/0' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed-tail@n0/0' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:head-embed@n0/0' 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed@n0/0' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed-head@n0/0,head@n0/1' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed@n0/0,head@n0/0' 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed-head@n0/0+n0/1(2:1:1)' 2>&1 | FileCheck %s --check-prefix=SHARES
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed-head@n0/0+n0/1(1:0)' 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:head@n0/0,embed@n0/1' 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not autohet-opt %s --dist-assign-stages=stages='1x2:embed-head@n0/0+n0/1(2147483647:1)' 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not autohet-opt %s --dist-assign-stages=stages='4294967296x2:embed-head@n0/0' 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not autohet-opt %s --dist-assign-stages='global-batch=7 stages=1x2:embed-head@n0/0' 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: sed 's/^module/module attributes {dist.plan = "{}"}/' %s | not autohet-opt --dist-assign-stages 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/, het.units = .*\]//' %s | not autohet-opt --dist-assign-stages=stages='1x2:embed-head@n0/0' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNNUMBERED
// RUN: sed 's/het.unit = "head"/het.unit = "tail"/' %s | not autohet-opt --dist-assign-stages=stages='1x2:embed-head@n0/0' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNLISTED

// NONE: error: has no plan: give the option 'stages' or the attribute 'dist.plan'
// FORM: error: stages: stage assignment, column 1: 'embed@' is not units@devices
// COUNT: error: stages: stage assignment, column 1: '2x0' must be COUNTxSIZE of microbatches
// SIZE: error: has no model for microbatches of 3 samples, which replica 0 asks for
// UNKNOWN: error: replica 0, stage 0: unknown unit 'tail'; the model has 2 units: embed, head
// RANGE: error: replica 0, stage 0: range 'head-embed' runs backwards
// MISSING: error: replica 0 has unit head in no stage
// TWICE: error: replica 0 has unit head in stage 0 and in stage 1
// DEVICE: error: replica 0, stage 1: device n0/0 is used twice
// SHARES: error: replica 0, stage 0: has 3 shares for 2 devices
// SUM: error: replica 0, stage 0: the weights [2147483647, 1] add up to 2^31 or more
// HUGE: error: replica 0, stage 0: 4294967296 microbatches of 2 samples from sample 0 on reach outside a batch of 8589934592, which is too large
// SHARE: error: replica 0, stage 0: a share is 0, wanted 1 or more
// ORDER: error: 'het.neg' op is in stage 1, but stage 0 reads it in the forward part
// BATCH: error: replicas do 2 samples a step, the plan says 7
// PLAN: error: dist.plan:{{.*}}'format'
// UNNUMBERED: error: has no het.units: het-number-units writes it
// UNLISTED: error: 'het.exp' op is of unit 'tail', which het.units does not list
module {
  func.func @model(%x: tensor<2x6xf32> {het.name = "x"}) -> tensor<2x6xf32> attributes {het.batch_size = 2 : i64, het.units = ["embed", "head"]} {
    %y = het.neg %x {het.unit = "embed"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %z = het.exp %y {het.unit = "head"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    return %z : tensor<2x6xf32>
  }
}
