//===- GraphBuilder.h - layers of a transformer as het ---------*- C++ -*-===//
//
// What families are made of. Each call adds the ops that the importer of ONNX
// files has for that layer once its patterns are fused, so that later phases
// cannot tell where a model came from.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_CONFIG_GRAPHBUILDER_H
#define AUTOHET_LIB_FRONTEND_CONFIG_GRAPHBUILDER_H

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Frontend/Config.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace autohet::config {

enum class Activation { GeluErf, GeluTanh, Silu, Relu };

/// Cosines and sines of the angles by which positions turn pairs of elements.
struct RotaryTables {
  mlir::Value cos, sin; ///< [1, 1, S, R/2]
  bool is_interleaved = false;

  explicit operator bool() const { return bool(cos); }
};

/// What a router makes of its logits.
struct Routing {
  mlir::Value probabilities; ///< [..., choices]: their softmax
  mlir::Value is_chosen;     ///< i1, [..., count, choices]: one in each row
  mlir::Value
      shares; ///< [..., choices]: of the chosen, with a sum of 1; else 0
};

struct AttentionShape {
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
};

struct AttentionOptions {
  double scale = 1;
  bool is_causal = true;
  mlir::Value mask; ///< broadcasts to [B, H, S, S]; i1 or null
  double dropout = 0;
};

class GraphBuilder {
public:
  GraphBuilder(mlir::Location loc, const ConfigOptions &options,
               int64_t sequenceLength);

  int64_t batch() const { return options.batch; }
  int64_t sequenceLength() const { return length; }
  /// Else addLossTerm() is not for this model.
  bool hasLossTerms() const { return options.loss_terms; }

  /// Ops that follow are named after `module`, as "model.layers.0.mlp".
  void enter(const llvm::Twine &module);

  /// An input of one integer for each token, [B, S].
  mlir::Value addInput(llvm::StringRef name);
  /// The input `attention_mask` as a mask of keys, [B, 1, 1, S]; null where
  /// there is none.
  mlir::Value addPaddingMask(bool isNeeded);

  mlir::Value parameter(const llvm::Twine &name, llvm::ArrayRef<int64_t> shape);
  /// The rows from `first` on of a parameter of `rows` rows.
  mlir::Value parameterRows(const llvm::Twine &name, int64_t first,
                            int64_t count, llvm::ArrayRef<int64_t> whole);
  /// The columns from `first` on.
  mlir::Value parameterColumns(const llvm::Twine &name, int64_t first,
                               int64_t count, llvm::ArrayRef<int64_t> whole);

  mlir::Value embedding(const llvm::Twine &table, int64_t rows, int64_t hidden,
                        mlir::Value ids);
  /// `x` times the weight `<name>.weight` [out, in], plus `<name>.bias`.
  mlir::Value linear(mlir::Value x, const llvm::Twine &name, int64_t out,
                     bool hasBias);
  /// As linear(), with a weight [in, out], as GPT-2 has them.
  mlir::Value conv1d(mlir::Value x, const llvm::Twine &name, int64_t out);
  /// `x` times a weight, summed over its last dim and dim `contracted`.
  mlir::Value product(mlir::Value x, mlir::Value weight, int64_t contracted);
  mlir::Value layerNorm(mlir::Value x, const llvm::Twine &name, double epsilon);
  mlir::Value rmsNorm(mlir::Value x, mlir::Value scale, double epsilon);

  mlir::Value add(mlir::Value left, mlir::Value right);
  mlir::Value multiply(mlir::Value left, mlir::Value right);
  mlir::Value scalar(double value);
  /// `x`, and 0 where `share` is not positive.
  mlir::Value wherePositive(mlir::Value share, mlir::Value x);
  mlir::Value activate(Activation kind, mlir::Value x);
  /// To each row its `count` most probable choices, by shares.
  Routing route(mlir::Value logits, int64_t count);
  /// `x` itself where `p` is 0 or dropout is off.
  mlir::Value dropout(mlir::Value x, double p);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);

  /// Elements from `first` on of the last dim.
  mlir::Value lastDim(mlir::Value x, int64_t first, int64_t count);

  /// From [B, S, heads * dim] to [B, heads, S, dim], and back.
  mlir::Value splitHeads(mlir::Value x, int64_t heads, int64_t dim);
  mlir::Value mergeHeads(mlir::Value x);
  RotaryTables rotaryTables(llvm::ArrayRef<double> inverseFrequencies,
                            double attentionFactor, bool isInterleaved);
  mlir::Value rotate(mlir::Value x, const RotaryTables &tables);
  /// Keys no further than `window` - 1 before the query; null where none is.
  mlir::Value windowMask(int64_t window);
  /// Both, where both are.
  mlir::Value allowBoth(mlir::Value left, mlir::Value right);
  mlir::Value attention(mlir::Value query, mlir::Value key, mlir::Value value,
                        const AttentionOptions &how);

  /// What balanceOfRouters() is of.
  void addRouter(const Routing &routing);
  /// How evenly the routers so far spread the microbatch's tokens: 1 for each
  /// choice that a token has if evenly, else more.
  mlir::Value balanceOfRouters();

  /// A scalar that the loss has a part in, by `factor`.
  void addLossTerm(llvm::StringRef name, mlir::Value term, double factor);

  /// Another name that PyTorch has for a tied parameter.
  void addAlias(llvm::StringRef parameter, llvm::StringRef other);

  /// Ends the model: terms of the loss follow its output.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value logits);

private:
  mlir::RankedTensorType float32(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  /// The mean over dims that samples are among.
  mlir::Value meanOfMicrobatch(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::Value box(const llvm::Twine &name, llvm::ArrayRef<int64_t> offsets,
                  llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> whole);

  const ConfigOptions &options;
  int64_t length;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  mlir::Location file, loc;
  int64_t dropouts = 0; ///< so far: their ids
  mlir::Value isToken;  ///< i1, [B, S]: no padding; null where all are tokens
  /// Summed over routers, [choices]: how often each was chosen by a token, and
  /// how probable it was.
  mlir::Value routedCounts, routedProbabilities;
  int64_t routers = 0;
  struct LossTerm {
    mlir::StringAttr name;
    mlir::Value value;
    double factor;
  };
  llvm::SmallVector<LossTerm, 1> terms;
  /// Whole parameters, in the order of their first use.
  llvm::MapVector<mlir::StringAttr, mlir::RankedTensorType> parameters;
  llvm::StringMap<mlir::ArrayAttr> aliases;
};

} // namespace autohet::config

#endif
