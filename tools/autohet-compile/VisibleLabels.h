//===- VisibleLabels.h - labels that a model could copy --------*- C++ -*-===//
//
// Where every token sees the next one, a model that is trained to predict it
// learns to copy: its loss falls to nothing and says nothing.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_COMPILE_VISIBLELABELS_H
#define AUTOHET_TOOLS_COMPILE_VISIBLELABELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// The first attention of a model none of whose attentions hides later tokens
/// from earlier ones; null where one does, where one may, and where there is no
/// attention to judge by.
mlir::Operation *findVisibleFuture(mlir::func::FuncOp model);

/// Whether there is a label for each token of an input that is bound to token
/// data: then the next tokens can be the labels.
bool hasLabelOfEachToken(mlir::func::FuncOp model);

} // namespace autohet

#endif
