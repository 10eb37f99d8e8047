//===- Family.h - a kind of model that configs describe --------*- C++ -*-===//
//
// A family knows its keys and how its layers are put together. Reading comes
// first and reports all that is wrong; only then is anything built.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_CONFIG_FAMILY_H
#define AUTOHET_LIB_FRONTEND_CONFIG_FAMILY_H

#include "ConfigKeys.h"
#include "GraphBuilder.h"

#include <memory>

namespace autohet::config {

class Family {
public:
  virtual ~Family() = default;

  virtual void read(ConfigKeys &keys) = 0;
  /// Of the longest sequence that positions are defined for.
  virtual int64_t longestSequence() const = 0;
  /// Whether positions may go beyond that.
  virtual bool mayBeLonger() const { return false; }
  /// How many dims of a head turn by position: tables hold an angle for each
  /// pair of them at each position. 0: none, and no tables.
  virtual int64_t rotaryDims() const { return 0; }
  /// The logits.
  virtual mlir::Value build(GraphBuilder &graph) const = 0;
};

std::unique_ptr<Family> createGpt2();
std::unique_ptr<Family> createBert();
std::unique_ptr<Family> createLlama();
std::unique_ptr<Family> createMetaLlama(); ///< params.json of the first release
std::unique_ptr<Family> createMistral();
std::unique_ptr<Family> createMixtral();
std::unique_ptr<Family> createQwen2();
std::unique_ptr<Family> createQwen3();
std::unique_ptr<Family> createGemma();
std::unique_ptr<Family> createGptNeox();
std::unique_ptr<Family> createPhi();

//===----------------------------------------------------------------------===//
// What families have in common
//===----------------------------------------------------------------------===//

Activation readActivation(ConfigKeys &keys, llvm::StringRef key,
                          llvm::StringRef fallback);

/// `head_dim` beside hidden size and heads; where it is absent, heads divide
/// the hidden size. `isFree`: it may be any number.
int64_t readHeadDim(ConfigKeys &keys, int64_t hidden, int64_t heads,
                    bool isFree, std::optional<int64_t> fallback = {});

/// Refuses architectures that are none of `supported`; the first is the
/// default.
void readArchitecture(ConfigKeys &keys,
                      llvm::ArrayRef<llvm::StringRef> supported);

} // namespace autohet::config

#endif
