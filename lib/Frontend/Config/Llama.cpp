//===- Llama.cpp - llama and what descends from it ------------------------===//
//
// One decoder of root-mean-square norms, rotary positions, grouped key/value
// heads and a gated MLP; families differ in biases, windows, norms on heads and
// names.
//
//===----------------------------------------------------------------------===//

#include "Llama.h"

#include <cmath>

using namespace mlir;

namespace autohet::config {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void Llama::readSizes(ConfigKeys &keys, int64_t defaultPositions,
                      std::optional<int64_t> defaultKeyHeads) {
  layers = keys.countOfParts({"num_hidden_layers"});
  hidden = keys.count({"hidden_size"});
  heads = keys.count({"num_attention_heads"});
  // Here null is as many as heads, and absent the default.
  bool isDefault = defaultKeyHeads && !keys.isNull("num_key_value_heads");
  keyHeads =
      keys.count({"num_key_value_heads"}, isDefault ? *defaultKeyHeads : heads);
  inner = keys.count({"intermediate_size"});
  vocabulary = keys.count({"vocab_size"});
  positions = keys.count({"max_position_embeddings"}, defaultPositions);
  if (heads % keyHeads)
    keys.refuse("num_key_value_heads", "must divide the " + llvm::Twine(heads) +
                                           " attention heads, found " +
                                           llvm::Twine(keyHeads));
}

void Llama::read(ConfigKeys &keys) {
  readOwn(keys);
  readArchitecture(keys, {architecture});
  headDim = readHeadDim(keys, hidden, heads, /*isFree=*/true, defaultHeadDim);
  epsilon = keys.number({"rms_norm_eps", "norm_eps"}, epsilon);
  attentionDropout = keys.probability({"attention_dropout"}, 0);
  isTied = keys.flag("tie_word_embeddings", isTied);
  rotary = readRotary(keys, headDim, positions, rotaryDefaults);
  // Slices of a product that add up to the same.
  keys.ignore({"pretraining_tp", "is_decoder"});
}

/// Layers from `max_window_layers` on look back no further than the window.
void Llama::readWindow(ConfigKeys &keys) {
  int64_t size = keys.count({"sliding_window"}, 4096);
  int64_t first = keys.count({"max_window_layers"}, 28, 0);
  if (keys.flag("use_sliding_window", false))
    window = size, firstWindowLayer = first;
  if (const Tree *types = keys.get("layer_types"))
    for (auto [layer, type] : llvm::enumerate(types->items))
      if ((type.text == "sliding_attention") !=
          (window && int64_t(layer) >= firstWindowLayer))
        return keys.refuse("layer_types",
                           "says that layer " + llvm::Twine(layer) + " is '" +
                               type.text +
                               "', against use_sliding_window and "
                               "max_window_layers: not supported");
  keys.requireFlag("use_mrope", false);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value Llama::norm(GraphBuilder &graph, Value x, const llvm::Twine &name,
                  int64_t size) const {
  Value scale = graph.parameter(name + ".weight", {size});
  if (addsOneToScales)
    scale = graph.add(scale, graph.scalar(1));
  return graph.rmsNorm(x, scale, epsilon);
}

Value Llama::attention(GraphBuilder &graph, Value x, const std::string &layer,
                       const RotaryTables &tables, Value mask) const {
  auto project = [&](const char *name, int64_t count) {
    return graph.splitHeads(
        graph.linear(x, layer + name, count * headDim, hasInputBias), count,
        headDim);
  };
  Value query = project(names.query, heads), key = project(names.key, keyHeads),
        value = project(names.value, keyHeads);
  if (hasHeadNorms) {
    query = norm(graph, query, layer + "self_attn.q_norm", headDim);
    key = norm(graph, key, layer + "self_attn.k_norm", headDim);
  }
  AttentionOptions how;
  how.scale = 1 / std::sqrt(double(headDim));
  how.mask = mask;
  how.dropout = attentionDropout;
  Value y = graph.attention(graph.rotate(query, tables),
                            graph.rotate(key, tables), value, how);
  return graph.linear(y, layer + names.output, hidden, hasOutputBias);
}

Value Llama::mlp(GraphBuilder &graph, Value x, const std::string &layer) const {
  Value gate = graph.activate(
      activation, graph.linear(x, layer + names.gate, inner, hasMlpBias));
  Value up = graph.linear(x, layer + names.up, inner, hasMlpBias);
  return graph.linear(graph.multiply(gate, up), layer + names.down, hidden,
                      hasMlpBias);
}

Value Llama::build(GraphBuilder &graph) const {
  graph.enter(names.embedding);
  Value ids = graph.addInput("input_ids");
  Value padding = graph.addPaddingMask(/*isNeeded=*/false);
  RotaryTables tables =
      graph.rotaryTables(rotary.inverseFrequencies(graph.sequenceLength()),
                         rotary.attention_factor, isInterleaved);
  Value windowed =
      window ? graph.allowBoth(graph.windowMask(window), padding) : padding;
  std::string tableName = (llvm::Twine(names.embedding) + ".weight").str();
  Value x = graph.embedding(tableName, vocabulary, hidden, ids);
  if (scalesEmbedding)
    x = graph.multiply(x, graph.scalar(std::sqrt(double(hidden))));
  for (int64_t number = 0; number < layers; ++number) {
    std::string layer = names.layer + std::to_string(number) + ".";
    graph.enter(layer + "self_attn");
    Value y = norm(graph, x, layer + names.attention_norm, hidden);
    x = graph.add(x,
                  attention(graph, y, layer, tables,
                            number >= firstWindowLayer ? windowed : padding));
    graph.enter(layer + "mlp");
    y = norm(graph, x, layer + names.mlp_norm, hidden);
    x = graph.add(x, mlp(graph, y, layer));
  }
  graph.enter(names.head);
  std::string headName = (llvm::Twine(names.head) + ".weight").str();
  if (isTied)
    graph.addAlias(tableName, headName);
  x = norm(graph, x, names.norm, hidden);
  return graph.product(
      x, graph.parameter(isTied ? tableName : headName, {vocabulary, hidden}),
      1);
}

//===----------------------------------------------------------------------===//
// The families
//===----------------------------------------------------------------------===//

namespace {

struct PlainLlama : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "LlamaForCausalLM";
    readSizes(keys, 2048);
    activation = readActivation(keys, "hidden_act", "silu");
    hasInputBias = hasOutputBias = keys.flag("attention_bias", false);
    hasMlpBias = keys.flag("mlp_bias", false);
  }
};

constexpr Names metaNames = {
    "tok_embeddings",  "layers.",         "attention_norm",  "attention.wq",
    "attention.wk",    "attention.wv",    "attention.wo",    "ffn_norm",
    "feed_forward.w1", "feed_forward.w3", "feed_forward.w2", "norm",
    "output"};

/// The keys of params.json, which Meta's own release has beside weights of its
/// own names, with neighbouring elements rotated.
struct MetaLlama : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "LlamaForCausalLM";
    names = metaNames;
    isInterleaved = true;
    layers = keys.countOfParts({"n_layers"});
    hidden = keys.count({"dim"});
    heads = keys.count({"n_heads"});
    keyHeads = keys.count({"n_kv_heads"}, heads);
    vocabulary = keys.count({"vocab_size"});
    positions = keys.count({"max_seq_len"}, 2048);
    epsilon = 1e-5;
    if (heads % keyHeads)
      keys.refuse("n_kv_heads", "must divide the " + llvm::Twine(heads) +
                                    " heads, found " + llvm::Twine(keyHeads));
    // Two thirds of four times the width, in whole multiples.
    int64_t multiple = keys.count({"multiple_of"}, 256);
    double width =
        keys.number({"ffn_dim_multiplier"}, 1) * double(8 * hidden / 3);
    if (width >= 1 && width < double(kLargestCount))
      inner = int64_t(width);
    else
      keys.refuse("ffn_dim_multiplier",
                  "makes MLPs whose width is not from 1 to " +
                      llvm::Twine(kLargestCount));
    inner = (inner + multiple - 1) / multiple * multiple;
    keys.requireFlag("use_scaled_rope", false);
    keys.ignore({"max_batch_size"});
  }
};

struct Mistral : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "MistralForCausalLM";
    readSizes(keys, 4096 * 32, 8);
    activation = readActivation(keys, "hidden_act", "silu");
    // Here null is no window, and absent the default.
    window = keys.isNull("sliding_window")
                 ? 0
                 : keys.count({"sliding_window"}, 4096);
  }
};

struct Qwen2 : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "Qwen2ForCausalLM";
    readSizes(keys, 32768, 32);
    activation = readActivation(keys, "hidden_act", "silu");
    hasInputBias = true;
    readWindow(keys);
  }
};

struct Qwen3 : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "Qwen3ForCausalLM";
    readSizes(keys, 32768, 32);
    defaultHeadDim = 128;
    activation = readActivation(keys, "hidden_act", "silu");
    hasInputBias = hasOutputBias = keys.flag("attention_bias", false);
    hasHeadNorms = true;
    readWindow(keys);
  }
};

struct Gemma : Llama {
  void readOwn(ConfigKeys &keys) override {
    architecture = "GemmaForCausalLM";
    readSizes(keys, 8192, 16);
    defaultHeadDim = 256;
    isTied = true;
    hasInputBias = hasOutputBias = keys.flag("attention_bias", false);
    addsOneToScales = scalesEmbedding = true;
    keys.requireFlag("use_bidirectional_attention", false);
    // Early files say "gelu" and mean the tanh form.
    llvm::StringRef key =
        keys.has("hidden_activation") ? "hidden_activation" : "hidden_act";
    activation = readActivation(keys, key, "gelu_pytorch_tanh");
    if (activation == Activation::GeluErf)
      activation = Activation::GeluTanh;
    keys.ignore({"hidden_act", "hidden_activation"});
  }
};

} // namespace

std::unique_ptr<Family> createLlama() { return std::make_unique<PlainLlama>(); }
std::unique_ptr<Family> createMetaLlama() {
  return std::make_unique<MetaLlama>();
}
std::unique_ptr<Family> createMistral() { return std::make_unique<Mistral>(); }
std::unique_ptr<Family> createQwen2() { return std::make_unique<Qwen2>(); }
std::unique_ptr<Family> createQwen3() { return std::make_unique<Qwen3>(); }
std::unique_ptr<Family> createGemma() { return std::make_unique<Gemma>(); }

} // namespace autohet::config
