//===- OnnxControl.cpp - branches and loops that shapes decide ------------===//
//
// A branch whose condition has become a constant is the nodes of one side; one
// that depends on data computes both. A loop of constant length is unrolled.
// Nothing of control flow is left at the level of `het`.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// Iterations that are written out at most.
static constexpr int64_t kMostIterations = 1024;

/// A boolean that has become a constant; nothing where it is none.
static std::optional<bool> constantBool(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) ||
      !elements.getElementType().isInteger(1) || elements.getNumElements() != 1)
    return std::nullopt;
  return *elements.getValues<bool>().begin();
}

static LogicalResult convertIf(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  Region *bodies[] = {node.body("else_branch"), node.body("then_branch")};
  if (!bodies[0] || !bodies[1] || node.type(0).getNumElements() != 1 ||
      !node.type(0).getElementType().isInteger(1))
    return node.error() << "wanted a condition and two branches";
  // Branches see what is around them; values of their own would come from
  // nowhere.
  for (Region *body : bodies)
    if (body->getNumArguments())
      return node.error() << "has a branch with " << body->getNumArguments()
                          << " inputs, wanted none";
  if (auto condition = constantBool(node.operand(0)))
    return node.state().convertBody(*bodies[*condition], results);
  // Both have no side effects: compute both, and take one.
  SmallVector<Value> sides[2];
  for (unsigned side : {0, 1})
    if (failed(node.state().convertBody(*bodies[side], sides[side])))
      return failure();
  if (sides[0].size() != sides[1].size())
    return node.error() << "branches have " << sides[1].size() << " and "
                        << sides[0].size() << " outputs";
  Value condition = node.reshape(node.operand(0), {});
  for (auto [otherwise, then] : llvm::zip_equal(sides[0], sides[1])) {
    if (otherwise.getType() != then.getType())
      return node.error() << "branches give " << then.getType() << " and "
                          << otherwise.getType()
                          << ", and which is taken depends on data";
    results.push_back(OnnxMath(node).select(condition, then, otherwise));
  }
  return success();
}

/// Carried values, then one row of each scan output an iteration.
static LogicalResult convertLoop(OnnxNode &node, Results &results) {
  Region *body = node.body("body");
  if (!body || body->getNumArguments() < 2)
    return node.error() << "has no body with an iteration and a condition";
  int64_t count = kMostIterations;
  if (node.has(0)) {
    auto given = node.constantInts(0, "trip count");
    if (failed(given))
      return failure();
    count = given->size() == 1 ? given->front() : -1;
  }
  unsigned carriedCount = body->getNumArguments() - 2;
  SmallVector<Value> carried;
  for (unsigned i = 0; i < carriedCount; ++i) {
    if (!node.has(2 + i))
      return node.error() << "has no initial value of carried value " << i;
    carried.push_back(node.operand(2 + i));
  }
  Value condition =
      node.has(1) ? node.operand(1)
                  : OnnxMath(node).splat({}, node.builder().getI1Type(), 1);
  SmallVector<SmallVector<Value>> scans;
  for (int64_t i = 0;; ++i) {
    auto goesOn = constantBool(condition);
    if (!goesOn)
      return node.error() << "goes on as long as data say, which is not "
                             "supported: a constant trip count and condition "
                             "are";
    if (!*goesOn || i == count)
      break;
    if (i == kMostIterations)
      return node.error() << "does more than " << kMostIterations
                          << " iterations, which are written out one by one";
    SmallVector<Value> arguments = {node.reshape(node.constantInts({i}), {}),
                                    condition};
    llvm::append_range(arguments, carried);
    SmallVector<Value> yields;
    if (failed(node.state().convertBody(*body, yields, arguments)))
      return failure();
    if (yields.size() < 1 + carriedCount)
      return node.error() << "its body has " << yields.size() << " outputs";
    condition = yields[0];
    carried.assign(yields.begin() + 1, yields.begin() + 1 + carriedCount);
    scans.resize(yields.size() - 1 - carriedCount);
    for (auto [rows, row] : llvm::zip_equal(
             scans, ArrayRef(yields).drop_front(1 + carriedCount))) {
      SmallVector<int64_t> shape(tensorType(row).getShape());
      shape.insert(shape.begin(), 1);
      rows.push_back(node.reshape(row, shape));
    }
  }
  llvm::append_range(results, carried);
  for (ArrayRef<Value> rows : scans) {
    for (Value row : rows)
      if (row.getType() != rows.front().getType())
        return node.error() << "gives rows of " << rows.front().getType()
                            << " and " << row.getType();
    results.push_back(OnnxMath(node).concat(rows, 0));
  }
  if (results.size() < node.numResults())
    return node.error() << "does no iteration, so that its scan outputs have "
                           "no shape";
  return success();
}

void autohet::addControlHandlers(OnnxHandlers &handlers) {
  handlers["If"] = convertIf;
  handlers["Loop"] = convertLoop;
}
