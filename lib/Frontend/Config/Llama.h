//===- Llama.h - the decoder that llama's descendants share ----*- C++ -*-===//
//
// A family of its own derives from it: keys in `readOwn`, a layer of another
// kind by overriding it.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_CONFIG_LLAMA_H
#define AUTOHET_LIB_FRONTEND_CONFIG_LLAMA_H

#include "Family.h"
#include "Rotary.h"

namespace autohet::config {

/// How the tensors of a checkpoint are called.
struct Names {
  const char *embedding, *layer, *attention_norm, *query, *key, *value, *output,
      *mlp_norm, *gate, *up, *down, *norm, *head;
};
inline constexpr Names huggingFaceNames = {"model.embed_tokens",
                                           "model.layers.",
                                           "input_layernorm",
                                           "self_attn.q_proj",
                                           "self_attn.k_proj",
                                           "self_attn.v_proj",
                                           "self_attn.o_proj",
                                           "post_attention_layernorm",
                                           "mlp.gate_proj",
                                           "mlp.up_proj",
                                           "mlp.down_proj",
                                           "model.norm",
                                           "lm_head"};

class Llama : public Family {
public:
  void read(ConfigKeys &keys) override;
  int64_t longestSequence() const override { return positions; }
  bool mayBeLonger() const override { return true; }
  int64_t rotaryDims() const override { return rotary.dims; }
  mlir::Value build(GraphBuilder &graph) const override;

protected:
  /// Keys of this family alone.
  virtual void readOwn(ConfigKeys &keys) = 0;
  /// What follows attention and its norm; `layer` begins its names.
  virtual mlir::Value mlp(GraphBuilder &graph, mlir::Value x,
                          const std::string &layer) const;
  /// Without a default, there are as many key/value heads as heads.
  void readSizes(ConfigKeys &keys, int64_t defaultPositions,
                 std::optional<int64_t> defaultKeyHeads = std::nullopt);
  void readWindow(ConfigKeys &keys);

  Names names = huggingFaceNames;
  llvm::StringRef architecture;
  int64_t layers = 0, hidden = 0, heads = 0, keyHeads = 0, headDim = 0,
          inner = 0, vocabulary = 0, positions = 0;
  std::optional<int64_t> defaultHeadDim; ///< else of hidden size and heads
  double epsilon = 1e-6, attentionDropout = 0;
  Activation activation = Activation::Silu;
  RotaryDefaults rotaryDefaults;
  Rotary rotary;
  bool isInterleaved = false; ///< neighbours turn, instead of halves
  bool isTied = false;
  bool hasInputBias = false, hasOutputBias = false, hasMlpBias = false;
  bool hasHeadNorms = false;    ///< on queries and keys
  bool addsOneToScales = false; ///< of norms, which are stored less 1
  bool scalesEmbedding = false; ///< by the root of the hidden size
  int64_t window = 0;           ///< 0: none
  int64_t firstWindowLayer = 0;

private:
  mlir::Value norm(GraphBuilder &graph, mlir::Value x, const llvm::Twine &name,
                   int64_t size) const;
  mlir::Value attention(GraphBuilder &graph, mlir::Value x,
                        const std::string &layer, const RotaryTables &tables,
                        mlir::Value mask) const;
};

} // namespace autohet::config

#endif
