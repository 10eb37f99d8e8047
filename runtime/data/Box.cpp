//===- Box.cpp - boxes of global tensors ------------------------------------===//

#include "data/Box.h"

#include "core/Program.h"

#include <algorithm>
#include <cstring>

namespace autohet::runtime {

Box Box::whole(std::vector<int64_t> shape) {
  Box box;
  box.offset.assign(shape.size(), 0);
  box.size = shape;
  box.global = std::move(shape);
  return box;
}

Box Box::of(const ah_parameter &p) {
  return {{p.global_shape, p.global_shape + p.rank},
          {p.box_offset, p.box_offset + p.rank},
          {p.box_size, p.box_size + p.rank}};
}

int64_t Box::elements() const { return elementCount(size.data(), size.size()); }

std::string Box::text() const {
  std::string text = "[";
  for (size_t dim = 0; dim < size.size(); ++dim)
    text += (dim ? ", " : "") + std::to_string(offset[dim]) + ":" +
            std::to_string(offset[dim] + size[dim]);
  return text + "] of " + shapeText(global.data(), global.size());
}

bool Box::contains(const Box &other) const {
  for (size_t dim = 0; dim < size.size(); ++dim)
    if (other.offset[dim] < offset[dim] ||
        other.offset[dim] + other.size[dim] > offset[dim] + size[dim])
      return false;
  return true;
}

static std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

namespace {
struct StridedCopy {
  const std::vector<int64_t> &size;
  std::vector<int64_t> fromStrides, toStrides; // bytes
  unsigned elementBytes;

  void run(size_t dim, const char *from, char *to) const {
    size_t left = size.size() - dim;
    if (left == 0) {
      memcpy(to, from, elementBytes);
    } else if (left == 1) {
      copyRow(from, to, dim, 0, size[dim]);
    } else if (left == 2 && fromStrides[dim + 1] != elementBytes) {
      copyTiles(from, to, dim);
    } else {
      for (int64_t i = 0; i < size[dim]; ++i)
        run(dim + 1, from + i * fromStrides[dim], to + i * toStrides[dim]);
    }
  }

  void copyRow(const char *from, char *to, size_t dim, int64_t begin,
               int64_t end) const {
    int64_t fromStride = fromStrides[dim], toStride = toStrides[dim];
    if (fromStride == elementBytes && toStride == elementBytes) {
      memcpy(to + begin * toStride, from + begin * fromStride,
             (end - begin) * elementBytes);
      return;
    }
    for (int64_t i = begin; i < end; ++i)
      memcpy(to + i * toStride, from + i * fromStride, elementBytes);
  }

  // A transpose in tiles, so that a column's cache lines are used whole.
  void copyTiles(const char *from, char *to, size_t dim) const {
    constexpr int64_t tile = 32;
    for (int64_t row = 0; row < size[dim]; row += tile)
      for (int64_t column = 0; column < size[dim + 1]; column += tile)
        for (int64_t i = row; i < std::min(row + tile, size[dim]); ++i)
          copyRow(from + i * fromStrides[dim], to + i * toStrides[dim], dim + 1,
                  column, std::min(column + tile, size[dim + 1]));
  }
};
} // namespace

static int64_t byteOffset(const Box &box, const std::vector<int64_t> &strides) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim)
    offset += box.offset[dim] * strides[dim];
  return offset;
}

static std::vector<int64_t> scaled(std::vector<int64_t> strides,
                                   int64_t factor) {
  for (int64_t &stride : strides)
    stride *= factor;
  return strides;
}

void copyFromGlobal(const Box &box, unsigned elementBytes, const char *global,
                    char *packed, bool transposed) {
  if (box.elements() == 0)
    return;
  std::vector<int64_t> stored = box.global;
  size_t rank = stored.size();
  if (transposed)
    std::swap(stored[rank - 2], stored[rank - 1]);
  std::vector<int64_t> strides = rowMajorStrides(stored);
  if (transposed)
    std::swap(strides[rank - 2], strides[rank - 1]);
  strides = scaled(strides, elementBytes);
  int64_t start = byteOffset(box, strides);
  StridedCopy{box.size, std::move(strides),
              scaled(rowMajorStrides(box.size), elementBytes), elementBytes}
      .run(0, global + start, packed);
}

void copyToGlobal(const Box &box, unsigned elementBytes, const char *packed,
                  char *global) {
  if (box.elements() == 0)
    return;
  std::vector<int64_t> strides =
      scaled(rowMajorStrides(box.global), elementBytes);
  int64_t start = byteOffset(box, strides);
  StridedCopy{box.size, scaled(rowMajorStrides(box.size), elementBytes),
              std::move(strides), elementBytes}
      .run(0, packed, global + start);
}

} // namespace autohet::runtime
