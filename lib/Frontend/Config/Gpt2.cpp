//===- Gpt2.cpp - the family of gpt2 --------------------------------------===//

#include "Family.h"

#include <cmath>

using namespace mlir;

namespace autohet::config {
namespace {

class Gpt2 : public Family {
public:
  void read(ConfigKeys &keys) override;
  int64_t longestSequence() const override { return positions; }
  Value build(GraphBuilder &graph) const override;

private:
  Value attention(GraphBuilder &graph, Value x, int64_t layer,
                  Value mask) const;

  int64_t layers = 0, hidden = 0, heads = 0, inner = 0, vocabulary = 0,
          positions = 0;
  double epsilon = 0, embeddingDropout = 0, attentionDropout = 0,
         residualDropout = 0;
  Activation activation = Activation::GeluTanh;
  bool scales = true, scalesByLayer = false, isTied = true;
};

} // namespace

void Gpt2::read(ConfigKeys &keys) {
  readArchitecture(keys, {"GPT2LMHeadModel"});
  layers = keys.countOfParts({"n_layer", "num_hidden_layers"});
  hidden = keys.count({"n_embd", "hidden_size"});
  heads = keys.count({"n_head", "num_attention_heads"});
  vocabulary = keys.count({"vocab_size"});
  positions = keys.count({"n_positions", "max_position_embeddings"}, 1024);
  inner = keys.count({"n_inner"}, 4 * hidden);
  readHeadDim(keys, hidden, heads, /*isFree=*/false);
  epsilon = keys.number({"layer_norm_epsilon"}, 1e-5);
  activation = readActivation(keys, "activation_function", "gelu_new");
  embeddingDropout = keys.probability({"embd_pdrop"}, 0.1);
  attentionDropout = keys.probability({"attn_pdrop"}, 0.1);
  residualDropout = keys.probability({"resid_pdrop"}, 0.1);
  scales = keys.flag("scale_attn_weights", true);
  scalesByLayer = keys.flag("scale_attn_by_inverse_layer_idx", false);
  isTied = keys.flag("tie_word_embeddings", true);
  keys.requireFlag("add_cross_attention", false);
  // The order of scaling in half precision; n_ctx is an old n_positions.
  keys.ignore({"is_decoder", "reorder_and_upcast_attn", "n_ctx", "summary_type",
               "summary_use_proj", "summary_activation",
               "summary_proj_to_labels", "summary_first_dropout"});
}

Value Gpt2::attention(GraphBuilder &graph, Value x, int64_t layer,
                      Value mask) const {
  std::string name = ("transformer.h." + llvm::Twine(layer) + ".attn.").str();
  // One weight [in, 3 out] for the three, of which each is a view.
  SmallVector<Value> parts;
  for (int64_t part = 0; part < 3; ++part) {
    Value weight = graph.parameterColumns(name + "c_attn.weight", part * hidden,
                                          hidden, {hidden, 3 * hidden});
    Value bias = graph.parameterColumns(name + "c_attn.bias", part * hidden,
                                        hidden, {3 * hidden});
    Value y = graph.add(graph.product(x, weight, 0), bias);
    parts.push_back(graph.splitHeads(y, heads, hidden / heads));
  }
  AttentionOptions how;
  how.scale = scales ? 1 / std::sqrt(double(hidden / heads)) : 1;
  if (scalesByLayer)
    how.scale /= double(layer + 1);
  how.mask = mask;
  how.dropout = attentionDropout;
  Value y = graph.attention(parts[0], parts[1], parts[2], how);
  return graph.dropout(graph.conv1d(y, name + "c_proj", hidden),
                       residualDropout);
}

Value Gpt2::build(GraphBuilder &graph) const {
  graph.enter("transformer");
  Value ids = graph.addInput("input_ids");
  Value mask = graph.addPaddingMask(/*isNeeded=*/false);
  Value x = graph.embedding("transformer.wte.weight", vocabulary, hidden, ids);
  x = graph.add(x, graph.parameterRows("transformer.wpe.weight", 0,
                                       graph.sequenceLength(),
                                       {positions, hidden}));
  x = graph.dropout(x, embeddingDropout);
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = ("transformer.h." + llvm::Twine(layer)).str();
    graph.enter(name + ".attn");
    Value y = graph.layerNorm(x, name + ".ln_1", epsilon);
    x = graph.add(attention(graph, y, layer, mask), x);
    graph.enter(name + ".mlp");
    y = graph.layerNorm(x, name + ".ln_2", epsilon);
    y = graph.activate(activation, graph.conv1d(y, name + ".mlp.c_fc", inner));
    y = graph.dropout(graph.conv1d(y, name + ".mlp.c_proj", hidden),
                      residualDropout);
    x = graph.add(x, y);
  }
  graph.enter("lm_head");
  if (isTied)
    graph.addAlias("transformer.wte.weight", "lm_head.weight");
  x = graph.layerNorm(x, "transformer.ln_f", epsilon);
  return graph.product(
      x,
      graph.parameter(isTied ? "transformer.wte.weight" : "lm_head.weight",
                      {vocabulary, hidden}),
      1);
}

std::unique_ptr<Family> createGpt2() { return std::make_unique<Gpt2>(); }

} // namespace autohet::config
