//===- OnnxUpdates.cpp - optimizer steps that a file holds ----------------===//
//
// Nodes of ai.onnx.preview.training: plain arithmetic on n tensors at once.
// Operands are the learning rate, the number of updates done, then all n
// tensors, all n gradients, and all n of each kind of state.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

namespace {

/// One tensor's operands and what is common to all.
struct Update {
  const OnnxMath &math;
  OnnxNode &node;
  Value rate, count; // scalars of the tensor's type
  Value x, gradient, first, second;

  Value regularized() const {
    return math.add(math.mul(x, node.floatField("norm_coefficient", 0)),
                    gradient);
  }
};

/// New values: the tensor, and its states in order.
using Formula = SmallVector<Value> (*)(const Update &);

SmallVector<Value> adagrad(const Update &u) {
  const OnnxMath &m = u.math;
  double decay = u.node.floatField("decay_factor", 0);
  Value rate = m.div(u.rate, m.add(m.mul(u.count, decay), 1));
  Value g = u.regularized();
  Value squares = m.add(u.first, m.mul(g, g));
  Value root = m.add(m.sqrt(squares), u.node.floatField("epsilon", 0));
  return {m.sub(u.x, m.div(m.mul(rate, g), root)), squares};
}

SmallVector<Value> momentum(const Update &u) {
  const OnnxMath &m = u.math;
  double alpha = u.node.floatField("alpha", 0);
  Value isLater = m.compare(het::ComparePredicate::gt, u.count, 0);
  Value beta = m.select(isLater, m.like(u.x, u.node.floatField("beta", 0)),
                        m.like(u.x, 1));
  Value g = u.regularized();
  Value v = m.add(m.mul(u.first, alpha), m.mul(g, beta));
  Value step = u.node.stringField("mode", "standard") == "nesterov"
                   ? m.add(g, m.mul(v, alpha))
                   : v;
  return {m.sub(u.x, m.mul(u.rate, step)), v};
}

SmallVector<Value> adam(const Update &u) {
  const OnnxMath &m = u.math;
  double alpha = u.node.floatField("alpha", 0.9f),
         beta = u.node.floatField("beta", 0.999f);
  Value g = u.regularized();
  Value v = m.add(m.mul(u.first, alpha), m.mul(g, 1 - alpha));
  Value h = m.add(m.mul(u.second, beta), m.mul(m.mul(g, g), 1 - beta));
  auto bias = [&](double decay) {
    return m.sub(1, u.node.create<het::PowOp>(m.like(u.x, decay), u.count));
  };
  Value isLater = m.compare(het::ComparePredicate::gt, u.count, 0);
  Value corrected = m.div(m.mul(u.rate, m.sqrt(bias(beta))), bias(alpha));
  Value rate = m.select(isLater, corrected, u.rate);
  Value root = m.add(m.sqrt(h), u.node.floatField("epsilon", 0));
  Value x = m.sub(u.x, m.div(m.mul(rate, v), root));
  x = m.mul(x, 1 - u.node.floatField("norm_coefficient_post", 0));
  return {x, v, h};
}

template <Formula formula, unsigned states>
LogicalResult convertUpdate(OnnxNode &node, Results &results) {
  constexpr unsigned kinds = 2 + states; // tensors, gradients, states
  unsigned operands = node.numOperands();
  if (operands < 2 + kinds || (operands - 2) % kinds ||
      failed(node.needOperands(operands)))
    return node.error() << "has " << operands << " operands, wanted 2 and "
                        << kinds << " for each tensor";
  for (unsigned index : {0, 1})
    if (node.type(index).getNumElements() != 1)
      return node.error() << "operand " << index << " is " << node.type(index)
                          << ", wanted one number";
  unsigned count = (operands - 2) / kinds;
  OnnxMath math(node);
  SmallVector<Value> values[1 + states];
  for (unsigned i = 0; i < count; ++i) {
    auto operand = [&](unsigned kind) {
      return node.operand(2 + kind * count + i);
    };
    for (unsigned kind = 0; kind < kinds; ++kind)
      if (auto type = node.type(2 + kind * count + i);
          type != node.type(2 + i) || !isa<FloatType>(type.getElementType()))
        return node.error()
               << "operand " << 2 + kind * count + i << " is " << type
               << ", wanted floats, as the tensor " << node.type(2 + i);
    auto scalar = [&](unsigned index) {
      return math.castLike(node.reshape(node.operand(index), {}), operand(0));
    };
    Update update{
        math,       node,       scalar(0),  scalar(1),
        operand(0), operand(1), operand(2), states == 2 ? operand(3) : Value()};
    for (auto [kind, value] : llvm::enumerate(formula(update)))
      values[kind].push_back(value);
  }
  for (auto &kind : values)
    llvm::append_range(results, kind);
  return success();
}

} // namespace

void autohet::addUpdateHandlers(OnnxHandlers &handlers) {
  handlers["ai.onnx.preview.training::Adagrad"] = convertUpdate<adagrad, 1>;
  handlers["ai.onnx.preview.training::Momentum"] = convertUpdate<momentum, 1>;
  handlers["ai.onnx.preview.training::Adam"] = convertUpdate<adam, 2>;
}
