//===- Protobuf.h - the fields of a protobuf message -------------*- C++ -*-===//
//
// The little of the wire format that ONNX tensors need: the runtime links no
// protobuf.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_DATA_PROTOBUF_H
#define AUTOHET_RUNTIME_DATA_PROTOBUF_H

#include "core/Error.h"

#include <cstdint>
#include <string>

namespace autohet::runtime {

/// Walks the fields of a message, one `next` a field. Throws where the bytes
/// are no message.
class ProtobufReader {
public:
  ProtobufReader(const std::string &path, const char *data, uint64_t size)
      : path(path), at(data), end(data + size) {}
  /// The message that the current field is.
  ProtobufReader message() const { return {path, bytes, length}; }
  std::string text() const { return {bytes, bytes + length}; }

  /// Whether there is another field.
  bool next() {
    if (at == end)
      return false;
    uint64_t key = varint();
    field = key >> 3;
    type = key & 7;
    value = length = 0;
    bytes = at;
    switch (type) {
    case 0:
      value = varint();
      break;
    case 1:
      bytes = take(length = 8);
      break;
    case 2:
      length = varint();
      bytes = take(length);
      break;
    case 5:
      bytes = take(length = 4);
      break;
    default:
      damaged();
    }
    return true;
  }

  /// Visits the integers of a field, packed or not.
  template <typename Visit>
  void integers(Visit visit) const {
    if (type == 0)
      return visit(value);
    if (type != 2)
      damaged();
    ProtobufReader inner = message();
    while (inner.at != inner.end)
      visit(inner.varint());
  }

  uint64_t field = 0, value = 0, length = 0;
  unsigned type = 0;
  const char *bytes = nullptr;

private:
  uint64_t varint() {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t byte = *take(1);
      result |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80)
        return result;
    }
    damaged();
  }
  const char *take(uint64_t count) {
    if (count > uint64_t(end - at))
      damaged();
    at += count;
    return at - count;
  }
  [[noreturn]] void damaged() const {
    fail(AH_ERROR_INPUT, "'%s': is truncated, or no protobuf message",
         path.c_str());
  }

  const std::string &path;
  const char *at, *end;
};

} // namespace autohet::runtime

#endif
