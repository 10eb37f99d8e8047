//===- Mixtral.cpp - several experts in place of one MLP ------------------===//
//
// A router gives each token to the few experts that its softmax likes best, by
// shares that add up to 1.
//
// Every expert computes every token here, and a token's share in all others is
// 0: the same numbers as if only the chosen ones had. Shapes then do not depend
// on data, experts are plain products that are divided like any other, and no
// token's weights are ever copied. The price is arithmetic, by the number of
// experts over the number that is chosen.
//
//===----------------------------------------------------------------------===//

#include "Llama.h"

using namespace mlir;

namespace autohet::config {
namespace {

class Mixtral : public Llama {
protected:
  void readOwn(ConfigKeys &keys) override;
  Value mlp(GraphBuilder &graph, Value x,
            const std::string &layer) const override;
  Value build(GraphBuilder &graph) const override;

private:
  bool isBalanced(const GraphBuilder &graph) const {
    return graph.hasLossTerms() && balanceFactor != 0;
  }

  int64_t experts = 0, chosen = 0;
  double balanceFactor = 0; ///< of the experts' balance in the loss
};

void Mixtral::readOwn(ConfigKeys &keys) {
  architecture = "MixtralForCausalLM";
  readSizes(keys, 4096 * 32, 8);
  activation = readActivation(keys, "hidden_act", "silu");
  epsilon = 1e-5;
  rotaryDefaults.theta = 1e6;
  window = keys.count({"sliding_window"}, 0, 0);
  experts = keys.countOfParts({"num_local_experts"}, 8);
  if (experts * layers > (1 << 16))
    keys.refuse("num_local_experts", "makes " + llvm::Twine(experts * layers) +
                                         " experts in all, wanted at most " +
                                         llvm::Twine(1 << 16));
  chosen = keys.count({"num_experts_per_tok"}, 2);
  if (chosen > experts)
    keys.refuse("num_experts_per_tok",
                "must be at most the " + llvm::Twine(experts) +
                    " experts, found " + llvm::Twine(chosen));
  if (keys.number({"router_jitter_noise"}, 0) != 0)
    keys.refuse("router_jitter_noise",
                "draws noise for the router, which is not supported: it must "
                "be 0");
  // Who asks for the routers' logits asks for their part in the loss.
  double factor = keys.number({"router_aux_loss_coef"}, 0.001);
  if (keys.flag("output_router_logits", false))
    balanceFactor = factor;
  else
    keys.ignore({"router_aux_loss_coef"});
  // Of files by others: every layer has experts.
  if (keys.count({"moe_frequency"}, 1) != 1)
    keys.refuse("moe_frequency", "must be 1: every layer has experts");
}

Value Mixtral::mlp(GraphBuilder &graph, Value x,
                   const std::string &layer) const {
  std::string block = layer + "block_sparse_moe.";
  Routing routing = graph.route(
      graph.linear(x, block + "gate", experts, /*hasBias=*/false), chosen);
  if (isBalanced(graph))
    graph.addRouter(routing);
  Value sum;
  for (int64_t number = 0; number < experts; ++number) {
    std::string expert = block + "experts." + std::to_string(number) + ".";
    Value share = graph.lastDim(routing.shares, number, 1);
    Value gate = graph.wherePositive(
        share, graph.linear(x, expert + "w1", inner, false));
    Value up = graph.wherePositive(
        share, graph.linear(x, expert + "w3", inner, false));
    Value y = graph.multiply(graph.activate(activation, gate), up);
    y = graph.linear(y, expert + "w2", hidden, false);
    y = graph.multiply(y, share);
    sum = sum ? graph.add(sum, y) : y;
  }
  return sum;
}

Value Mixtral::build(GraphBuilder &graph) const {
  Value logits = Llama::build(graph);
  if (isBalanced(graph)) {
    graph.enter("aux_loss");
    graph.addLossTerm("aux_loss", graph.balanceOfRouters(), balanceFactor);
  }
  return logits;
}

} // namespace

std::unique_ptr<Family> createMixtral() { return std::make_unique<Mixtral>(); }

} // namespace autohet::config
