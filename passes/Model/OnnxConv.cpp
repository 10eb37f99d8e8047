//===- OnnxConv.cpp - convolutions as products ----------------------------===//
//
// Transformers have few: patches of an image become tokens, frames of sound
// become fewer. Each place's elements are brought together, by views where
// patches do not overlap and by a slice for each element of the kernel where
// they do, and multiplied with the kernels.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"
#include "autohet/Support/Extents.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// A slice each is built for so many elements of a kernel.
static constexpr int64_t kMostSlices = 1024;

namespace {
/// One spatial dim.
struct Window {
  int64_t kernel, stride, dilation, before = 0, after = 0;
  int64_t places = 0; // of the result

  int64_t span() const { return (kernel - 1) * dilation + 1; }
};
} // namespace

/// The numbers of a field, one a spatial dim, or two.
static FailureOr<SmallVector<int64_t>>
spatialField(OnnxNode &node, StringRef name, size_t count, int64_t otherwise,
             int64_t least) {
  auto values =
      node.intsField(name).value_or(SmallVector<int64_t>(count, otherwise));
  if (values.size() != count ||
      llvm::any_of(values, [&](int64_t v) { return v < least; }))
    return node.error() << name << " is [" << ArrayRef<int64_t>(values)
                        << "], wanted " << count << " numbers from " << least
                        << " on";
  return values;
}

/// The windows over the spatial dims, which follow batch and channels.
static FailureOr<SmallVector<Window>> findWindows(OnnxNode &node) {
  size_t count = node.rank(0) - 2;
  ArrayRef<int64_t> extents = node.shape(0).drop_front(2),
                    kernel = node.shape(1).drop_front(2);
  auto strides = spatialField(node, "strides", count, 1, 1);
  auto dilations = spatialField(node, "dilations", count, 1, 1);
  auto pads = spatialField(node, "pads", 2 * count, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  if (auto given = node.intsField("kernel_shape");
      given && ArrayRef<int64_t>(*given) != kernel)
    return node.error() << "kernel_shape is [" << ArrayRef<int64_t>(*given)
                        << "], its weights have [" << kernel << "]";
  StringRef automatic = node.stringField("auto_pad", "NOTSET");
  bool isSame = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!isSame && automatic != "NOTSET" && automatic != "VALID")
    return node.error() << "auto_pad is " << automatic
                        << ", wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER";
  SmallVector<Window> windows;
  for (size_t d = 0; d < count; ++d) {
    Window window{kernel[d], (*strides)[d], (*dilations)[d]};
    if (window.kernel > kMaxElements / window.dilation)
      return node.error() << "a kernel of " << window.kernel << ", dilated by "
                          << window.dilation
                          << ", is over more than 2^40 elements";
    if (automatic == "NOTSET") {
      window.before = (*pads)[d], window.after = (*pads)[d + count];
    } else if (isSame) {
      int64_t places = llvm::divideCeil(extents[d], window.stride);
      int64_t wanted = (places - 1) * window.stride + window.span();
      int64_t more = std::max<int64_t>(0, wanted - extents[d]);
      window.before =
          automatic == "SAME_UPPER" ? more / 2 : llvm::divideCeil(more, 2);
      window.after = more - window.before;
    }
    int64_t room = extents[d] + window.before + window.after - window.span();
    if (room < 0)
      return node.error() << "a kernel over " << window.span()
                          << " elements does not fit dim " << d + 2 << " of "
                          << node.type(0);
    window.places = room / window.stride + 1;
    windows.push_back(window);
  }
  return windows;
}

/// x with zeros around its spatial dims.
static Value padded(OnnxNode &node, Value x, ArrayRef<Window> windows) {
  OnnxMath math(node);
  Type element = tensorType(x).getElementType();
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window &window = windows[d];
    SmallVector<int64_t> shape(tensorType(x).getShape());
    SmallVector<Value> parts;
    auto zeros = [&](int64_t count) {
      shape[d + 2] = count;
      if (count)
        parts.push_back(math.splat(shape, element, 0));
    };
    zeros(window.before);
    parts.push_back(x);
    zeros(window.after);
    x = math.concat(parts, d + 2);
  }
  return x;
}

/// [N, C, O.., K..]: what each place's window sees. Windows that touch but do
/// not overlap are a view.
static Value tiles(OnnxNode &node, Value x, ArrayRef<Window> windows) {
  OnnxMath math(node);
  SmallVector<int64_t> shape(tensorType(x).getShape().take_front(2));
  SmallVector<int64_t> permutation{0, 1};
  for (auto [d, window] : llvm::enumerate(windows)) {
    x = math.slice(x, d + 2, 0, window.places * window.kernel);
    shape.append({window.places, window.kernel});
    permutation.push_back(2 + 2 * d);
  }
  for (size_t d = 0; d < windows.size(); ++d)
    permutation.push_back(3 + 2 * d);
  return node.transpose(node.reshape(x, shape), permutation);
}

/// The same, [N, C, O.., K] with the kernel's dims as one, of any windows: a
/// slice for each element of the kernel.
static Value gathered(OnnxNode &node, Value x, ArrayRef<Window> windows,
                      int64_t kernel) {
  OnnxMath math(node);
  SmallVector<Value> parts;
  for (int64_t element = 0; element < kernel; ++element) {
    Value part = x;
    int64_t rest = element;
    for (size_t d = windows.size(); d-- > 0;) {
      const Window &window = windows[d];
      int64_t offset = rest % window.kernel * window.dilation;
      rest /= window.kernel;
      part = math.slice(part, d + 2, offset, window.places, window.stride);
    }
    SmallVector<int64_t> shape(tensorType(part).getShape());
    shape.push_back(1);
    parts.push_back(node.reshape(part, shape));
  }
  return math.concat(parts, windows.size() + 2);
}

static LogicalResult convertConv(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1})
    if (failed(node.needFloats(i)))
      return failure();
  int64_t groups = node.intField("group", 1), rank = node.rank(0);
  ArrayRef<int64_t> x = node.shape(0), w = node.shape(1);
  if (rank < 3 || node.rank(1) != rank || groups < 1 || x[1] % groups ||
      w[0] % groups || w[1] != x[1] / groups ||
      node.type(0).getElementType() != node.type(1).getElementType())
    return node.error() << "input " << node.type(0) << " and weights "
                        << node.type(1) << " do not fit in " << groups
                        << " groups";
  auto windows = findWindows(node);
  if (failed(windows))
    return failure();
  int64_t kernel = 1, spatial = windows->size();
  bool touches = true;
  for (const Window &window : *windows) {
    kernel *= window.kernel;
    touches &= window.kernel == window.stride && window.dilation == 1;
  }
  if (kernel == 0 || (!touches && kernel > kMostSlices))
    return node.error() << "has a kernel of " << kernel
                        << " elements whose places overlap, wanted 1 to "
                        << kMostSlices;
  OnnxMath math(node);
  Value input = padded(node, node.operand(0), *windows);
  Value seen = touches ? tiles(node, input, *windows)
                       : gathered(node, input, *windows, kernel);
  Value weights = node.operand(1);
  SmallVector<int64_t> shape(tensorType(seen).getShape());
  SmallVector<int64_t> kernels =
      touches ? llvm::to_vector(w.drop_front(2)) : SmallVector<int64_t>{kernel};
  // [N, C, O.., K..] times [M, C, K..]: [N, O.., M]. Groups are another dim of
  // channels, which both have.
  SmallVector<int64_t> ofInput, ofWeights, shared, sharedByWeights;
  if (groups > 1) {
    shape[1] = x[1] / groups;
    shape.insert(shape.begin() + 1, groups);
    seen = node.reshape(seen, shape);
    shared.push_back(1), sharedByWeights.push_back(0);
  }
  if (groups > 1 || !touches) {
    SmallVector<int64_t> split{w[0] / groups, w[1]};
    if (groups > 1)
      split.insert(split.begin(), groups);
    llvm::append_range(split, kernels);
    weights = node.reshape(weights, split);
  }
  int64_t channel = groups > 1 ? 2 : 1;
  ofInput.push_back(channel), ofWeights.push_back(channel);
  for (int64_t d = 0; d < int64_t(kernels.size()); ++d) {
    ofInput.push_back(channel + 1 + spatial + d);
    ofWeights.push_back(channel + 1 + d);
  }
  Value y = node.create<het::MatmulOp>(seen, weights, ArrayRef<int64_t>(shared),
                                       ArrayRef<int64_t>(sharedByWeights),
                                       ArrayRef<int64_t>(ofInput),
                                       ArrayRef<int64_t>(ofWeights));
  // [G, N, O.., M / G] or [N, O.., M]: channels go behind the batch.
  SmallVector<int64_t> order;
  if (groups > 1)
    order = {1, 0, spatial + 2};
  else
    order = {0, spatial + 1};
  for (int64_t d = 0; d < spatial; ++d)
    order.push_back(channel + d);
  y = node.transpose(y, order);
  SmallVector<int64_t> result{x[0], w[0]};
  for (const Window &window : *windows)
    result.push_back(window.places);
  y = node.reshape(y, result);
  if (node.has(2)) {
    if (node.shape(2) != ArrayRef<int64_t>{w[0]})
      return node.error() << "bias is " << node.type(2)
                          << ", wanted a vector of " << w[0];
    SmallVector<int64_t> along(spatial + 1, 1);
    along[0] = w[0];
    y = math.add(y, node.reshape(node.operand(2), along));
  }
  results.push_back(y);
  return success();
}

void autohet::addConvHandlers(OnnxHandlers &handlers) {
  handlers["Conv"] = convertConv;
}
