//===- OnnxJoinedConstants.cpp - parameters inside of others --------------===//
//
// A model may join a parameter with another one before it multiplies, as
// MobileBERT's head does with the table of its words. Exporters fold that: the
// file has the table for the lookup, and a matrix that holds it once more. As
// these lie there they are trained apart, which is not the model's training.
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include <cstring>
#include <map>

using namespace mlir;
using namespace autohet;
using onnx::InitializerOp;

namespace {

/// The bits of a constant of two dims.
struct Matrix {
  const char *bytes;
  int64_t rows, columns;
  bool isTransposed;

  int64_t size() const { return rows * columns; }
  uint32_t at(int64_t row, int64_t column) const {
    return bitsOf(isTransposed ? column * rows + row : row * columns + column);
  }
  uint32_t first() const { return bitsOf(0); }
  uint32_t last() const { return bitsOf(size() - 1); }
  /// As freshly initialised constants may be, without being one. Some elements
  /// tell: weights may be larger than the memory.
  bool looksLikeOneNumber() const {
    int64_t step = size() / 64 | 1;
    for (int64_t i = step; i < size(); i += step)
      if (bitsOf(i) != bitsOf(0))
        return false;
    return bitsOf(0) == bitsOf(size() - 1);
  }
  Matrix transposed() const { return {bytes, columns, rows, !isTransposed}; }

private:
  // A file aligns nothing.
  uint32_t bitsOf(int64_t element) const {
    uint32_t bits;
    memcpy(&bits, bytes + element * sizeof bits, sizeof bits);
    return bits;
  }
};

/// A constant, and its bytes for as long as it is compared.
struct Held {
  InitializerOp constant;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
  Matrix matrix;
};

} // namespace

static bool isAt(const Matrix &whole, const Matrix &part, int64_t row,
                 int64_t column) {
  for (int64_t r = 0; r < part.rows; ++r)
    for (int64_t c = 0; c < part.columns; ++c)
      if (whole.at(row + r, column + c) != part.at(r, c))
        return false;
  return true;
}

/// Whether `whole` begins or ends with `part`, or with its transpose, as some
/// of its rows or of its columns.
static bool holds(const Matrix &whole, const Matrix &part) {
  for (const Matrix &given : {part, part.transposed()}) {
    int64_t rows = whole.rows - given.rows,
            columns = whole.columns - given.columns;
    if (rows < 0 || columns < 0 || (rows == 0) == (columns == 0))
      continue;
    if (isAt(whole, given, 0, 0) || isAt(whole, given, rows, columns))
      return true;
  }
  return false;
}

static void warnOf(InitializerOp joined, InitializerOp part) {
  emitWarning(joined.getLoc())
      << "constant '" << joined.getName() << "' holds '" << part.getName()
      << "' next to other elements: the exporter joined them, and the two are "
         "trained apart. If the model reads one parameter in both places, this "
         "is not its training: export it with autohet.export, which joins "
         "nothing";
}

void OnnxParameters::warnOfJoined() {
  SmallVector<Held> held;
  for (auto &[op, parameter] : parameters) {
    auto constant = cast<InitializerOp>(op);
    auto type = cast<RankedTensorType>(constant.getType());
    if (parameter.original || parameter.fill ||
        !type.getElementType().isF32() || type.getRank() != 2 ||
        !(isRightFactor(constant) || isLookedUp(constant)))
      continue;
    // What cannot be read is an error where it must be.
    auto bytes = llvm::MemoryBuffer::getFileSlice(
        *constant.getFile(), *constant.getBytes(), *constant.getOffset());
    if (!bytes ||
        (*bytes)->getBufferSize() != type.getNumElements() * sizeof(float))
      continue;
    Matrix matrix{(*bytes)->getBufferStart(), type.getDimSize(0),
                  type.getDimSize(1), /*isTransposed=*/false};
    held.push_back({constant, std::move(*bytes), matrix});
  }
  // What is joined has its first or its last element in common with the whole.
  // Few others have; many of a hostile file, of which not all are compared.
  constexpr int64_t mostCompared = int64_t(1) << 28;
  std::map<uint32_t, SmallVector<const Held *>> byFirst, byLast;
  for (const Held &part : held) {
    if (part.matrix.looksLikeOneNumber())
      continue;
    byFirst[part.matrix.first()].push_back(&part);
    byLast[part.matrix.last()].push_back(&part);
  }
  int64_t compared = 0;
  for (const Held &whole : held) {
    if (!mayBeComputed(whole.constant) || !isRightFactor(whole.constant))
      continue;
    const Matrix &matrix = whole.matrix;
    llvm::SetVector<const Held *> parts;
    parts.insert_range(byFirst[matrix.first()]);
    parts.insert_range(byLast[matrix.last()]);
    for (const Held *part : parts) {
      if (part->matrix.size() >= matrix.size() || compared > mostCompared)
        continue;
      compared += part->matrix.size();
      if (holds(matrix, part->matrix))
        warnOf(whole.constant, part->constant);
    }
  }
}
