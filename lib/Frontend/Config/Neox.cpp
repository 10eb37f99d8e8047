//===- Neox.cpp - the families of gpt_neox and phi ------------------------===//
//
// Decoders whose heads rotate in part, and whose MLP may read the same stream
// as the attention beside it.
//
//===----------------------------------------------------------------------===//

#include "Family.h"
#include "Rotary.h"

#include <cmath>

using namespace mlir;

namespace autohet::config {
namespace {

/// What both families have.
class PartlyRotary : public Family {
public:
  int64_t longestSequence() const override { return positions; }
  bool mayBeLonger() const override { return true; }
  int64_t rotaryDims() const override { return rotary.dims; }

protected:
  void readSizes(ConfigKeys &keys, std::optional<int64_t> defaultInner,
                 const RotaryDefaults &rotaryDefaults) {
    layers = keys.countOfParts({"num_hidden_layers"});
    hidden = keys.count({"hidden_size"});
    heads = keys.count({"num_attention_heads"});
    inner = keys.count({"intermediate_size"}, defaultInner);
    vocabulary = keys.count({"vocab_size"});
    positions = keys.count({"max_position_embeddings"}, 2048);
    headDim = readHeadDim(keys, hidden, heads, /*isFree=*/false);
    epsilon = keys.number({"layer_norm_eps"}, 1e-5);
    attentionDropout = keys.probability({"attention_dropout"}, 0);
    isTied = keys.flag("tie_word_embeddings", false);
    rotary = readRotary(keys, headDim, positions, rotaryDefaults);
  }

  RotaryTables tables(GraphBuilder &graph) const {
    return graph.rotaryTables(rotary.inverseFrequencies(graph.sequenceLength()),
                              rotary.attention_factor, /*isInterleaved=*/false);
  }
  AttentionOptions attentionOptions(Value mask) const {
    AttentionOptions how;
    how.scale = 1 / std::sqrt(double(headDim));
    how.mask = mask;
    how.dropout = attentionDropout;
    return how;
  }

  int64_t layers = 0, hidden = 0, heads = 0, headDim = 0, inner = 0,
          vocabulary = 0, positions = 0;
  double epsilon = 0, attentionDropout = 0;
  Activation activation = Activation::GeluErf;
  Rotary rotary;
  bool isTied = false;
};

class GptNeox : public PartlyRotary {
public:
  void read(ConfigKeys &keys) override {
    readArchitecture(keys, {"GPTNeoXForCausalLM"});
    RotaryDefaults defaults;
    defaults.partial_factor = 0.25;
    defaults.partial_key = "rotary_pct";
    defaults.theta_key = "rotary_emb_base";
    readSizes(keys, std::nullopt, defaults);
    activation = readActivation(keys, "hidden_act", "gelu");
    dropout = keys.probability({"hidden_dropout"}, 0);
    isParallel = keys.flag("use_parallel_residual", true);
    hasBias = keys.flag("attention_bias", true);
    // The decoder that it is anyway.
    keys.ignore({"classifier_dropout", "is_decoder"});
  }

  Value build(GraphBuilder &graph) const override {
    graph.enter("gpt_neox.embed_in");
    Value ids = graph.addInput("input_ids");
    Value mask = graph.addPaddingMask(/*isNeeded=*/false);
    RotaryTables rotary = tables(graph);
    Value x = graph.dropout(
        graph.embedding("gpt_neox.embed_in.weight", vocabulary, hidden, ids),
        dropout);
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::string name = ("gpt_neox.layers." + llvm::Twine(layer) + ".").str();
      graph.enter(name + "attention");
      Value y = graph.layerNorm(x, name + "input_layernorm", epsilon);
      y = graph.dropout(attention(graph, y, name + "attention.", rotary, mask),
                        dropout);
      Value sum = graph.add(y, x);
      graph.enter(name + "mlp");
      Value z = graph.layerNorm(isParallel ? x : sum,
                                name + "post_attention_layernorm", epsilon);
      z = graph.activate(
          activation, graph.linear(z, name + "mlp.dense_h_to_4h", inner, true));
      z = graph.linear(z, name + "mlp.dense_4h_to_h", hidden, true);
      x = graph.add(graph.dropout(z, dropout), sum);
    }
    graph.enter("embed_out");
    if (isTied)
      graph.addAlias("gpt_neox.embed_in.weight", "embed_out.weight");
    x = graph.layerNorm(x, "gpt_neox.final_layer_norm", epsilon);
    return graph.product(x,
                         graph.parameter(isTied ? "gpt_neox.embed_in.weight"
                                                : "embed_out.weight",
                                         {vocabulary, hidden}),
                         1);
  }

private:
  /// The rows of one weight are, head by head, those of query, key and value.
  Value attention(GraphBuilder &graph, Value x, const std::string &name,
                  const RotaryTables &rotary, Value mask) const {
    Value all = graph.splitHeads(
        graph.linear(x, name + "query_key_value", 3 * hidden, hasBias), heads,
        3 * headDim);
    auto part = [&](int64_t number) {
      return graph.lastDim(all, number * headDim, headDim);
    };
    Value query = graph.rotate(part(0), rotary),
          key = graph.rotate(part(1), rotary);
    Value y = graph.attention(query, key, part(2), attentionOptions(mask));
    return graph.linear(y, name + "dense", hidden, hasBias);
  }

  double dropout = 0;
  bool isParallel = true, hasBias = true;
};

class Phi : public PartlyRotary {
public:
  void read(ConfigKeys &keys) override {
    readArchitecture(keys, {"PhiForCausalLM"});
    RotaryDefaults defaults;
    defaults.partial_factor = 0.5;
    readSizes(keys, 8192, defaults);
    keyHeads = keys.count({"num_key_value_heads"}, heads);
    if (heads % keyHeads)
      keys.refuse("num_key_value_heads",
                  "must divide the " + llvm::Twine(heads) +
                      " attention heads, found " + llvm::Twine(keyHeads));
    activation = readActivation(keys, "hidden_act", "gelu_new");
    residualDropout = keys.probability({"resid_pdrop"}, 0);
    embeddingDropout = keys.probability({"embd_pdrop"}, 0);
    hasHeadNorms = keys.flag("qk_layernorm", false);
    keys.ignore({"is_decoder"});
  }

  Value build(GraphBuilder &graph) const override {
    graph.enter("model.embed_tokens");
    Value ids = graph.addInput("input_ids");
    Value mask = graph.addPaddingMask(/*isNeeded=*/false);
    RotaryTables rotary = tables(graph);
    Value x = graph.dropout(
        graph.embedding("model.embed_tokens.weight", vocabulary, hidden, ids),
        embeddingDropout);
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::string name = ("model.layers." + llvm::Twine(layer) + ".").str();
      graph.enter(name + "self_attn");
      Value normal = graph.layerNorm(x, name + "input_layernorm", epsilon);
      Value y = graph.dropout(
          attention(graph, normal, name + "self_attn.", rotary, mask),
          residualDropout);
      graph.enter(name + "mlp");
      Value z = graph.activate(
          activation, graph.linear(normal, name + "mlp.fc1", inner, true));
      z = graph.dropout(graph.linear(z, name + "mlp.fc2", hidden, true),
                        residualDropout);
      x = graph.add(graph.add(y, z), x);
    }
    graph.enter("lm_head");
    if (isTied)
      graph.addAlias("model.embed_tokens.weight", "lm_head.weight");
    x = graph.layerNorm(x, "model.final_layernorm", epsilon);
    x = graph.product(
        x,
        graph.parameter(isTied ? "model.embed_tokens.weight" : "lm_head.weight",
                        {vocabulary, hidden}),
        1);
    return graph.add(x, graph.parameter("lm_head.bias", {vocabulary}));
  }

private:
  Value attention(GraphBuilder &graph, Value x, const std::string &name,
                  const RotaryTables &rotary, Value mask) const {
    auto project = [&](llvm::StringRef which, int64_t count) {
      return graph.splitHeads(
          graph.linear(x, name + which, count * headDim, true), count, headDim);
    };
    Value query = project("q_proj", heads), key = project("k_proj", keyHeads),
          value = project("v_proj", keyHeads);
    if (hasHeadNorms) {
      query = graph.layerNorm(query, name + "q_layernorm", epsilon);
      key = graph.layerNorm(key, name + "k_layernorm", epsilon);
    }
    Value y =
        graph.attention(graph.rotate(query, rotary), graph.rotate(key, rotary),
                        value, attentionOptions(mask));
    return graph.linear(y, name + "dense", hidden, true);
  }

  int64_t keyHeads = 0;
  double residualDropout = 0, embeddingDropout = 0;
  bool hasHeadNorms = false;
};

} // namespace

std::unique_ptr<Family> createGptNeox() { return std::make_unique<GptNeox>(); }
std::unique_ptr<Family> createPhi() { return std::make_unique<Phi>(); }

} // namespace autohet::config
