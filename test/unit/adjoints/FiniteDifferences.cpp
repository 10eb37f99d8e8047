//===- FiniteDifferences.cpp - adjoints against central differences ---------===//

#include "FiniteDifferences.h"
#include "../kernels/KernelHarness.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::test;

namespace {

int64_t elementsOf(Type type) {
  return cast<RankedTensorType>(type).getNumElements();
}

std::string forwardText(const std::vector<Argument> &arguments,
                        const std::string &body,
                        const std::string &resultType) {
  std::string text = "func.func @f(";
  for (auto [i, argument] : llvm::enumerate(arguments))
    text += (i ? ", %a" : "%a") + std::to_string(i) + ": " + argument.type;
  return text + ") -> " + resultType + " {\n" + body +
         "\nreturn %y : " + resultType + "\n}\n";
}

/// From f(a...) -> y to g(a..., w) -> (gradient of sum(w * y) by each
/// differentiated argument). Arguments are parameters only while the pass runs.
FailureOr<std::string> differentiate(const std::string &forward,
                                     const std::vector<Argument> &arguments,
                                     MLIRContext &context) {
  context.loadDialect<het::HetDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(forward, &context);
  if (!module)
    return failure();
  auto function = *module->getOps<func::FuncOp>().begin();
  Block &block = function.front();
  Operation *terminator = block.getTerminator();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.kind != Argument::Differentiated)
      continue;
    Value value = block.getArgument(i);
    auto parameter = het::ParameterOp::create(
        b, function.getLoc(), cast<RankedTensorType>(value.getType()),
        "a" + std::to_string(i));
    value.replaceAllUsesWith(parameter);
  }

  Value y = terminator->getOperand(0);
  if (failed(function.insertArgument(arguments.size(), y.getType(), {},
                                     y.getLoc())))
    return failure();
  b.setInsertionPoint(terminator);
  Value weighted =
      het::MulOp::create(b, y.getLoc(), y, block.getArguments().back());
  auto dims = llvm::to_vector(
      llvm::seq<int64_t>(0, cast<RankedTensorType>(y.getType()).getRank()));
  Value loss = het::ReduceOp::create(b, y.getLoc(), het::ReduceKind::sum,
                                     weighted, dims, false);
  terminator->setOperand(0, loss);
  function.setFunctionType(
      b.getFunctionType(function.getArgumentTypes(), loss.getType()));
  function.setResultAttr(0, het::kNameAttr, b.getStringAttr("loss"));
  PassManager manager(&context);
  manager.addNestedPass<func::FuncOp>(createDifferentiate());
  if (failed(manager.run(*module)))
    return failure();

  // Each use of a parameter has a gradient of its own: tied ones are added.
  llvm::StringMap<Value> gradients;
  b.setInsertionPoint(terminator);
  for (auto op : llvm::make_early_inc_range(block.getOps<het::GradientOp>())) {
    Value &sum = gradients[op.getName()];
    sum = sum ? Value(het::AddOp::create(b, op.getLoc(), sum, op.getValue()))
              : op.getValue();
    op.erase();
  }
  for (auto op : llvm::make_early_inc_range(block.getOps<het::ParameterOp>())) {
    unsigned index = 0;
    (void)op.getName().drop_front().getAsInteger(10, index);
    op.replaceAllUsesWith(block.getArgument(index));
    op.erase();
  }
  SmallVector<Value> results;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.kind == Argument::Differentiated)
      results.push_back(gradients.lookup("a" + std::to_string(i)));
  if (llvm::is_contained(results, Value()))
    return failure();
  terminator->setOperands(results);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(),
                                             ValueRange(results).getTypes()));
  function.removeResAttrsAttr();
  PassManager cleanup(&context);
  cleanup.addPass(createCSEPass());
  if (failed(cleanup.run(*module)))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  function.print(os);
  return text;
}

/// Memory of one argument, whatever its element type.
struct Operand {
  Floats floats{0};
  Longs longs{0};
  Bools bools{0};
  void *pointer = nullptr;
};

} // namespace

void autohet::test::checkAdjoint(const std::vector<Argument> &arguments,
                                 const std::string &body,
                                 const std::string &resultType) {
  MLIRContext context;
  std::string forward = forwardText(arguments, body, resultType);
  FailureOr<std::string> backward = differentiate(forward, arguments, context);
  ASSERT_TRUE(succeeded(backward)) << "no adjoint of\n" << forward;
  Kernel f(forward), g(*backward);
  if (!f.isLoaded() || !g.isLoaded())
    return;

  std::vector<Operand> operands(arguments.size());
  std::vector<void *> pointers;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    size_t count = elementsOf(parseType(argument.type, &context));
    Operand &operand = operands[i];
    unsigned seed = 17 + i;
    if (argument.kind == Argument::Integers) {
      operand.longs = randomIntegers(count, seed, argument.low, argument.high);
      operand.pointer = operand.longs;
    } else if (argument.kind == Argument::Booleans) {
      Longs bits = randomIntegers(count, seed, 0, 2);
      operand.bools = Bools(count);
      for (size_t j = 0; j < count; ++j)
        operand.bools[j] = bits[j];
      operand.pointer = operand.bools;
    } else {
      operand.floats = random(count, seed, argument.low, argument.high);
      operand.pointer = operand.floats;
    }
    pointers.push_back(operand.pointer);
  }

  size_t resultCount = elementsOf(parseType(resultType, &context));
  Floats weights = random(resultCount, 5, 0.5, 1.5);
  Floats result(resultCount);
  auto loss = [&] {
    std::vector<void *> all(pointers);
    all.push_back(result);
    EXPECT_EQ(f(all), 0);
    double sum = 0;
    for (size_t i = 0; i < resultCount; ++i)
      sum += double(weights[i]) * result[i];
    return sum;
  };

  std::vector<Floats> gradients;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.kind == Argument::Differentiated)
      gradients.emplace_back(operands[i].floats.size());
  std::vector<void *> all(pointers);
  all.push_back(weights);
  for (Floats &gradient : gradients)
    all.push_back(gradient);
  ASSERT_EQ(g(all), 0);

  // f32 values of order 1: rounding costs 1e-7 / h, the third derivative h^2
  // / 6.
  constexpr float kStep = 1e-2f;
  size_t next = 0;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.kind != Argument::Differentiated)
      continue;
    Floats &x = operands[i].floats;
    std::vector<double> expected(x.size());
    for (size_t j = 0; j < x.size(); ++j) {
      float kept = x[j], up = kept + kStep, down = kept - kStep;
      x[j] = up;
      double above = loss();
      x[j] = down;
      double below = loss();
      x[j] = kept;
      expected[j] = (above - below) / (double(up) - double(down));
    }
    expectNear(
        gradients[next++], [&](size_t j) { return expected[j]; }, 1e-3,
        ("gradient by %a" + std::to_string(i)).c_str());
  }
}
