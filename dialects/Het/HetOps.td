//===- HetOps.td - the operations of the model --------------*- tablegen -*-===//
//
// All of them, for one page of documentation and one file of code. Include
// order: HetBase <- HetInterfaces <- HetOpBase <- the files below.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_OPS
#define AUTOHET_HET_OPS

include "Het/HetStructureOps.td"
include "Het/HetElementwiseOps.td"
include "Het/HetTensorOps.td"
include "Het/HetIndexOps.td"
include "Het/HetLayerOps.td"

#endif
