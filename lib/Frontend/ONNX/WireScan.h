//===- WireScan.h - where tensors lie inside a model file ------*- C++ -*-===//
//
// Protobuf's parser copies tensors out of the file and forgets where they were.
// A device that loads its slice of a weight wants the place, so the wire format
// is walked once more.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_ONNX_WIRESCAN_H
#define AUTOHET_LIB_FRONTEND_ONNX_WIRESCAN_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace autohet::onnx {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// The bytes of one TensorProto, as far as they are one contiguous piece.
struct TensorBytes {
  std::optional<ByteRange> raw;
  /// Packed `float_data` is little-endian floats, one after the other. Written
  /// in several pieces it has no place.
  std::optional<ByteRange> floats;
  unsigned floatPieces = 0;
};

/// In the file's order, which is that of the parsed messages.
struct TensorPlaces {
  std::vector<TensorBytes> initializers;
  /// By node, then by attribute (those without a tensor are empty).
  std::vector<std::vector<TensorBytes>> attributes;
};

/// What stopped a scan: nothing, the end of the file inside a field, or bytes
/// that are no message at all.
struct ScanResult {
  enum Kind { Ok, Truncated, Malformed } kind = Ok;
  uint64_t offset = 0;
};

ScanResult scanModel(llvm::StringRef bytes, TensorPlaces &places);

} // namespace autohet::onnx

#endif
