//===- FileSource.cpp - inputs from files of tensors ------------------------===//
//
// The three sources that are not token streams: a named tensor of a file,
// labels made by shifting tokens, and constants by rule.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "data/Box.h"
#include "data/Source.h"

#include <cstring>

namespace autohet::runtime {

/// Calls `visit` with a value of the C type of an integer dtype.
template <typename Visit>
static auto visitInteger(uint8_t dtype, Visit &&visit) {
  switch (dtype) {
  case AH_I8:
    return visit(int8_t());
  case AH_U8:
  case AH_BOOL:
    return visit(uint8_t());
  case AH_I16:
    return visit(int16_t());
  case AH_U16:
    return visit(uint16_t());
  case AH_I32:
    return visit(int32_t());
  case AH_U32:
    return visit(uint32_t());
  case AH_U64:
    return visit(uint64_t());
  case AH_I64:
    return visit(int64_t());
  default:
    fail(AH_ERROR_INPUT, "inputs of dtype %s are not supported",
         dtypeName(dtype));
  }
}

int64_t loadInteger(uint8_t dtype, const char *from, int64_t index) {
  return visitInteger(dtype, [&](auto value) -> int64_t {
    memcpy(&value, from + index * sizeof value, sizeof value);
    return value;
  });
}

void storeInteger(uint8_t dtype, char *to, int64_t index, int64_t value) {
  auto as = [&](auto typed) {
    typed = static_cast<decltype(typed)>(value);
    memcpy(to + index * sizeof typed, &typed, sizeof typed);
  };
  if (dtype == AH_F32)
    as(float());
  else if (dtype == AH_F64)
    as(double());
  else
    visitInteger(dtype, as);
}

int64_t sampleElements(const ah_port &port) {
  int64_t elements = elementCount(port.shape, port.rank);
  return port.batch_dim < 0 || !elements
             ? elements
             : elements / port.shape[port.batch_dim];
}

static bool isInteger(uint8_t dtype) {
  return dtype >= AH_I8 && dtype <= AH_U64; // those that are computed with
}

namespace {
class FileSource : public Source {
public:
  FileSource(const Program &program, const ah_port &port,
             const FileTensor &tensor, bool isLabels)
      : program(program), port(port), name(tensor.where),
        box(Box::whole(tensor.info.shape)),
        globalBatch(program.header().global_batch) {
    checkShape(tensor.where, tensor.info);
    convert(tensor.where, tensor.data, tensor.info, isLabels);
    if (isLabels)
      count();
  }

  void fill(uint64_t step, uint64_t firstSample, char *to) override {
    if (port.batch_dim >= 0)
      box.offset[port.batch_dim] = step % blocks * globalBatch + firstSample;
    copyFromGlobal(box, dtypeBytes(port.dtype), data.data(), to);
  }

  uint64_t countLabels(uint64_t step) override { return counts[step % blocks]; }
  uint64_t batches() const override { return port.batch_dim >= 0 ? blocks : 0; }
  std::string where() const override { return name; }

private:
  void checkShape(const std::string &where, const TensorInfo &info) {
    std::vector<int64_t> wanted(port.shape, port.shape + port.rank);
    bool fits = info.shape.size() == wanted.size();
    if (fits && port.batch_dim >= 0) {
      int64_t samples = info.shape[port.batch_dim];
      if (samples == 0 || samples % globalBatch != 0)
        fail(AH_ERROR_INPUT,
             "%s has %lld samples, wanted a multiple of the global batch, %lld",
             where.c_str(), (long long)samples, (long long)globalBatch);
      blocks = samples / globalBatch;
      wanted[port.batch_dim] = samples;
    }
    if (info.shape != wanted)
      fail(AH_ERROR_INPUT, "%s has shape %s, wanted %s", where.c_str(),
           shapeText(info.shape.data(), info.shape.size()).c_str(),
           shapeText(wanted.data(), wanted.size()).c_str());
    box.size.assign(port.shape, port.shape + port.rank);
  }

  void convert(const std::string &where, const char *from,
               const TensorInfo &info, bool isLabels) {
    bool integers = isInteger(info.dtype);
    // Writers without a bfloat16 write the integers of its bits.
    if (info.dtype == AH_U16 && port.dtype == AH_BF16) {
      data.assign(from, from + info.bytes);
      return;
    }
    if (info.dtype != port.dtype && !integers)
      fail(AH_ERROR_INPUT, "%s is %s, wanted %s", where.c_str(),
           info.dtypeText.c_str(), dtypeName(port.dtype));
    bool isChecked = isLabels || port.vocabulary > 0;
    if (!integers || (info.dtype == port.dtype && !isChecked)) {
      data.assign(from, from + info.bytes);
      return;
    }
    int64_t elements = info.elements();
    data.resize(elements * dtypeBytes(port.dtype));
    for (int64_t index = 0; index < elements; ++index) {
      int64_t value = loadInteger(info.dtype, from, index);
      bool ignored = isLabels && value == program.header().ignore_index;
      if (port.vocabulary > 0 && !ignored &&
          (value < 0 || value >= port.vocabulary))
        fail(AH_ERROR_INPUT,
             "%s: element %s is %lld; the vocabulary has %lld entries, 0 to "
             "%lld",
             where.c_str(), position(info.shape, index).c_str(),
             (long long)value, (long long)port.vocabulary,
             (long long)port.vocabulary - 1);
      storeInteger(port.dtype, data.data(), index, value);
      if (isInteger(port.dtype) &&
          loadInteger(port.dtype, data.data(), index) != value)
        fail(AH_ERROR_INPUT, "%s: element %s is %lld, which %s cannot hold",
             where.c_str(), position(info.shape, index).c_str(),
             (long long)value, dtypeName(port.dtype));
    }
  }

  static std::string position(const std::vector<int64_t> &shape,
                              int64_t index) {
    std::vector<int64_t> at(shape.size());
    for (size_t dim = shape.size(); dim-- > 0; index /= shape[dim])
      at[dim] = index % shape[dim];
    return shapeText(at.data(), at.size());
  }

  // Labels of mean-squared error all count.
  void count() {
    counts.assign(blocks, 0);
    int64_t elements = data.size() / dtypeBytes(port.dtype);
    int64_t inner = 1;
    for (unsigned dim = std::max(port.batch_dim, 0); dim < port.rank; ++dim)
      inner *= box.global[dim];
    int64_t perBlock = inner / blocks;
    for (int64_t index = 0; index < elements; ++index)
      if (!isInteger(port.dtype) ||
          loadInteger(port.dtype, data.data(), index) !=
              program.header().ignore_index)
        ++counts[index % inner / perBlock];
  }

  const Program &program;
  const ah_port port;
  std::string name;
  Box box;
  int64_t globalBatch, blocks = 1;
  std::vector<char> data; // whole, in the port's dtype
  std::vector<uint64_t> counts;
};

class ShiftedSource : public Source {
public:
  ShiftedSource(const Program &program, const ah_port &port,
                const ah_port &tokenPort, std::unique_ptr<Source> tokens)
      : program(program), port(port), tokenPort(tokenPort),
        tokens(std::move(tokens)),
        buffer(elementCount(tokenPort.shape, tokenPort.rank) *
               dtypeBytes(tokenPort.dtype)) {}

  void fill(uint64_t step, uint64_t firstSample, char *to) override {
    tokens->fill(step, firstSample, buffer.data());
    int64_t length = sampleElements(tokenPort);
    int64_t elements = elementCount(port.shape, port.rank);
    for (int64_t index = 0; index < elements; ++index)
      storeInteger(
          port.dtype, to, index,
          (index + 1) % length == 0
              ? program.header().ignore_index
              : loadInteger(tokenPort.dtype, buffer.data(), index + 1));
  }

  uint64_t countLabels(uint64_t) override {
    return uint64_t(program.header().global_batch) *
           (sampleElements(tokenPort) - 1);
  }
  uint64_t batches() const override { return tokens->batches(); }
  std::string where() const override { return tokens->where(); }

private:
  const Program &program;
  const ah_port port, tokenPort;
  std::unique_ptr<Source> tokens;
  std::vector<char> buffer;
};

class RuleSource : public Source {
public:
  RuleSource(const ah_port &port, ah_binding rule) {
    int64_t elements = elementCount(port.shape, port.rank);
    int64_t last = port.rank ? port.shape[port.rank - 1] : 1;
    data.resize(elements * dtypeBytes(port.dtype));
    for (int64_t index = 0; index < elements; ++index)
      storeInteger(port.dtype, data.data(), index,
                   rule == AH_BIND_ONES    ? 1
                   : rule == AH_BIND_ZEROS ? 0
                                           : index % last);
  }
  void fill(uint64_t, uint64_t, char *to) override {
    memcpy(to, data.data(), data.size());
  }
  uint64_t countLabels(uint64_t) override { return 0; }

private:
  std::vector<char> data;
};
} // namespace

std::unique_ptr<Source> makeFileSource(const Program &program,
                                       const ah_port &port,
                                       const FileTensor &tensor,
                                       bool isLabels) {
  return std::make_unique<FileSource>(program, port, tensor, isLabels);
}

std::unique_ptr<Source> makeShiftedSource(const Program &program,
                                          const ah_port &port,
                                          const ah_port &tokenPort,
                                          std::unique_ptr<Source> tokens) {
  return std::make_unique<ShiftedSource>(program, port, tokenPort,
                                         std::move(tokens));
}

std::unique_ptr<Source> makeRuleSource(const ah_port &port, ah_binding rule) {
  return std::make_unique<RuleSource>(port, rule);
}

} // namespace autohet::runtime
