//===- WireScan.cpp - where tensors lie inside a model file ---------------===//
//
// Field numbers are those of onnx-ml.proto, which never change.
//
//===----------------------------------------------------------------------===//

#include "WireScan.h"

#include "llvm/ADT/STLFunctionalExtras.h"

using namespace autohet::onnx;

namespace {

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

enum Field : uint64_t {
  ModelGraph = 7,
  GraphNode = 1,
  GraphInitializer = 5,
  NodeAttribute = 5,
  AttributeTensor = 5,
  TensorFloatData = 4,
  TensorRawData = 9,
};

class Scanner {
public:
  Scanner(llvm::StringRef bytes) : bytes(bytes) {}

  using Visitor = llvm::function_ref<bool(uint64_t field, ByteRange payload)>;

  /// Calls `visit` for each length-delimited field in the range.
  bool walk(ByteRange range, Visitor visit) {
    uint64_t at = range.offset, end = range.offset + range.size;
    while (at < end) {
      uint64_t start = at, key = 0, size = 0;
      if (!readVarint(at, end, key))
        return false;
      uint64_t field = key >> 3;
      switch (key & 7) {
      case Varint:
        if (!readVarint(at, end, size))
          return false;
        continue;
      case Fixed64:
        size = 8;
        break;
      case Fixed32:
        size = 4;
        break;
      case Bytes:
        if (!readVarint(at, end, size))
          return false;
        break;
      default: // groups, which ONNX never had
        return fail(ScanResult::Malformed, start);
      }
      if (field == 0)
        return fail(ScanResult::Malformed, start);
      if (size > end - at)
        // A field that leaves its parent is garbage; one that leaves the file
        // has lost its end.
        return fail(size > bytes.size() - at ? ScanResult::Truncated
                                             : ScanResult::Malformed,
                    start);
      if ((key & 7) == Bytes && !visit(field, {at, size}))
        return false;
      at += size;
    }
    return true;
  }

  ScanResult result;

private:
  bool fail(ScanResult::Kind kind, uint64_t offset) {
    result = {kind, offset};
    return false;
  }

  bool readVarint(uint64_t &at, uint64_t end, uint64_t &value) {
    uint64_t start = at;
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at == end)
        return fail(end == bytes.size() ? ScanResult::Truncated
                                        : ScanResult::Malformed,
                    start);
      uint8_t byte = bytes[at++];
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return fail(ScanResult::Malformed, start);
  }

  llvm::StringRef bytes;
};

bool scanTensor(Scanner &scanner, ByteRange range, TensorBytes &tensor) {
  return scanner.walk(range, [&](uint64_t field, ByteRange payload) {
    if (field == TensorRawData)
      tensor.raw = payload; // the last one counts, as in protobuf
    if (field == TensorFloatData) {
      tensor.floats = payload;
      ++tensor.floatPieces;
    }
    return true;
  });
}

bool scanNode(Scanner &scanner, ByteRange range,
              std::vector<TensorBytes> &attributes) {
  return scanner.walk(range, [&](uint64_t field, ByteRange payload) {
    if (field != NodeAttribute)
      return true;
    TensorBytes &tensor = attributes.emplace_back();
    return scanner.walk(payload, [&](uint64_t field, ByteRange payload) {
      return field != AttributeTensor || scanTensor(scanner, payload, tensor);
    });
  });
}

} // namespace

ScanResult autohet::onnx::scanModel(llvm::StringRef bytes,
                                    TensorPlaces &places) {
  Scanner scanner(bytes);
  scanner.walk({0, bytes.size()}, [&](uint64_t field, ByteRange payload) {
    if (field != ModelGraph)
      return true;
    return scanner.walk(payload, [&](uint64_t field, ByteRange payload) {
      if (field == GraphInitializer)
        return scanTensor(scanner, payload, places.initializers.emplace_back());
      if (field == GraphNode)
        return scanNode(scanner, payload, places.attributes.emplace_back());
      return true;
    });
  });
  return scanner.result;
}
