//===- ParseOp.h - one op from text -----------------------------*- C++ -*-===//

#ifndef AUTOHET_TEST_UNIT_HET_PARSEOP_H
#define AUTOHET_TEST_UNIT_HET_PARSEOP_H

#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <string>

namespace autohet::test {

/// The only het op in a function with `arguments`.
class ParsedOp {
public:
  ParsedOp(const std::string &arguments, const std::string &text) {
    context.loadDialect<het::HetDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + text + "\nreturn\n}", &context);
    if (module)
      op = &(*module->getOps<mlir::func::FuncOp>().begin()).front().front();
  }
  /// Null where the text does not parse.
  mlir::Operation *get() const { return op; }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Operation *op = nullptr;
};

} // namespace autohet::test

#endif
