//===- Bert.cpp - the family of bert --------------------------------------===//

#include "Family.h"

#include <cmath>

using namespace mlir;

namespace autohet::config {
namespace {

class Bert : public Family {
public:
  void read(ConfigKeys &keys) override;
  int64_t longestSequence() const override { return positions; }
  Value build(GraphBuilder &graph) const override;

private:
  Value embed(GraphBuilder &graph) const;
  Value attention(GraphBuilder &graph, Value x, const std::string &name,
                  Value mask) const;
  Value head(GraphBuilder &graph, Value x) const;

  int64_t layers = 0, hidden = 0, heads = 0, inner = 0, vocabulary = 0,
          positions = 0, types = 0;
  double epsilon = 0, hiddenDropout = 0, attentionDropout = 0;
  Activation activation = Activation::GeluErf;
  bool isTied = true;
};

} // namespace

void Bert::read(ConfigKeys &keys) {
  readArchitecture(keys, {"BertForMaskedLM"});
  layers = keys.countOfParts({"num_hidden_layers"});
  hidden = keys.count({"hidden_size"});
  heads = keys.count({"num_attention_heads"});
  inner = keys.count({"intermediate_size"}, 3072);
  vocabulary = keys.count({"vocab_size"});
  positions = keys.count({"max_position_embeddings"}, 512);
  types = keys.count({"type_vocab_size"}, 2);
  readHeadDim(keys, hidden, heads, /*isFree=*/false);
  epsilon = keys.number({"layer_norm_eps"}, 1e-12);
  activation = readActivation(keys, "hidden_act", "gelu");
  hiddenDropout = keys.probability({"hidden_dropout_prob"}, 0.1);
  attentionDropout = keys.probability({"attention_probs_dropout_prob"}, 0.1);
  isTied = keys.flag("tie_word_embeddings", true);
  if (keys.word({"position_embedding_type"}, "absolute") != "absolute")
    keys.refuse("position_embedding_type",
                "is not 'absolute', which alone is supported");
  keys.requireFlag("is_decoder", false);
  keys.requireFlag("add_cross_attention", false);
  keys.ignore({"classifier_dropout", "directionality", "pooler_fc_size",
               "pooler_num_attention_heads", "pooler_num_fc_layers",
               "pooler_size_per_head", "pooler_type"});
}

Value Bert::embed(GraphBuilder &graph) const {
  std::string name = "bert.embeddings.";
  graph.enter("bert.embeddings");
  Value ids = graph.addInput("input_ids"),
        tokenTypes = graph.addInput("token_type_ids");
  Value x =
      graph.embedding(name + "word_embeddings.weight", vocabulary, hidden, ids);
  x = graph.add(x, graph.embedding(name + "token_type_embeddings.weight", types,
                                   hidden, tokenTypes));
  x = graph.add(x, graph.parameterRows(name + "position_embeddings.weight", 0,
                                       graph.sequenceLength(),
                                       {positions, hidden}));
  return graph.dropout(graph.layerNorm(x, name + "LayerNorm", epsilon),
                       hiddenDropout);
}

Value Bert::attention(GraphBuilder &graph, Value x, const std::string &name,
                      Value mask) const {
  auto project = [&](llvm::StringRef which) {
    return graph.splitHeads(
        graph.linear(x, name + ".attention.self." + which, hidden, true), heads,
        hidden / heads);
  };
  AttentionOptions how;
  how.scale = 1 / std::sqrt(double(hidden / heads));
  how.is_causal = false;
  how.mask = mask;
  how.dropout = attentionDropout;
  Value query = project("query"), key = project("key"),
        value = project("value");
  Value y = graph.linear(graph.attention(query, key, value, how),
                         name + ".attention.output.dense", hidden, true);
  y = graph.add(graph.dropout(y, hiddenDropout), x);
  return graph.layerNorm(y, name + ".attention.output.LayerNorm", epsilon);
}

Value Bert::head(GraphBuilder &graph, Value x) const {
  std::string name = "cls.predictions";
  graph.enter(name);
  x = graph.linear(x, name + ".transform.dense", hidden, true);
  x = graph.activate(activation, x);
  x = graph.layerNorm(x, name + ".transform.LayerNorm", epsilon);
  graph.addAlias("cls.predictions.bias", "cls.predictions.decoder.bias");
  if (isTied)
    graph.addAlias("bert.embeddings.word_embeddings.weight",
                   "cls.predictions.decoder.weight");
  x = graph.product(
      x,
      graph.parameter(isTied ? "bert.embeddings.word_embeddings.weight"
                             : name + ".decoder.weight",
                      {vocabulary, hidden}),
      1);
  return graph.add(x, graph.parameter(name + ".bias", {vocabulary}));
}

Value Bert::build(GraphBuilder &graph) const {
  Value x = embed(graph);
  Value mask = graph.addPaddingMask(/*isNeeded=*/true);
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = ("bert.encoder.layer." + llvm::Twine(layer)).str();
    graph.enter(name + ".attention");
    x = attention(graph, x, name, mask);
    graph.enter(name + ".output");
    Value y = graph.linear(x, name + ".intermediate.dense", inner, true);
    y = graph.activate(activation, y);
    y = graph.linear(y, name + ".output.dense", hidden, true);
    y = graph.add(graph.dropout(y, hiddenDropout), x);
    x = graph.layerNorm(y, name + ".output.LayerNorm", epsilon);
  }
  return head(graph, x);
}

std::unique_ptr<Family> createBert() { return std::make_unique<Bert>(); }

} // namespace autohet::config
