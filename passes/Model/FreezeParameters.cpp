//===- FreezeParameters.cpp - het-freeze-parameters -----------------------===//
//
// Takes parameters out of training by name: no gradient, no optimizer state,
// not in the gradient norm. They stay weights: placed, sharded and saved as
// before. A file may say itself which of its parameters are frozen.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Parameters.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Regex.h"

namespace autohet {
#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

struct FreezeParameters
    : autohet::impl::FreezeParametersBase<FreezeParameters> {
  using FreezeParametersBase::FreezeParametersBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (all)
      function.walk([](ParameterOp op) {
        if (op.isTrained())
          freeze(op);
      });
    if (!all && !pattern.empty() && failed(freezeByPattern()))
      return signalPassFailure();
    // After the pattern: it may name what is frozen already.
    llvm::StringSet<> listed;
    if (auto names =
            function->getAttrOfType<ArrayAttr>(autohet::kFrozenListAttr))
      for (auto name : names.getAsRange<StringAttr>())
        listed.insert(name.getValue());
    function->removeAttr(autohet::kFrozenListAttr);
    function.walk([&](ParameterOp op) {
      if (op.isTrained() && listed.contains(op.getName()))
        freeze(op);
    });
  }

private:
  LogicalResult freezeByPattern() {
    func::FuncOp function = getOperation();
    llvm::Regex regex(pattern);
    std::string problem;
    if (!regex.isValid(problem))
      return function.emitError("the pattern of parameters to freeze, '")
             << pattern << "', is no regular expression: " << problem;
    auto module = function->getParentOfType<ModuleOp>();
    llvm::StringSet<> named = autohet::findParameters(module, regex);
    bool found = false;
    function.walk([&](ParameterOp op) {
      // By its own name even where no source lists its names.
      if (!op.isTrained() ||
          !(named.contains(op.getName()) || regex.match(op.getName())))
        return;
      found = true;
      freeze(op);
    });
    if (found)
      return success();
    // A pattern with a slip would silently train what was to be frozen.
    InFlightDiagnostic error =
        function.emitError("no trained parameter matches the pattern '")
        << pattern << "' of parameters to freeze";
    if (auto parameters = function.getOps<ParameterOp>(); !parameters.empty())
      error << "; one is called '" << (*parameters.begin()).getName() << "'";
    return error;
  }

  static void freeze(ParameterOp op) {
    op.setUntrained(true);
    op->setAttr(kFrozenAttr, UnitAttr::get(op.getContext()));
  }
};

} // namespace
