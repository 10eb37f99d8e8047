//===- TensorReader.cpp - the constants of a model file -------------------===//
//
// Every size is checked here, before anybody reads a byte of the data.
//
//===----------------------------------------------------------------------===//

#include "TensorReader.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace autohet::onnx;
using ::onnx::TensorProto;

Type autohet::onnx::elementType(int32_t onnxType, MLIRContext *context) {
  switch (onnxType) {
  case TensorProto::FLOAT:
    return Float32Type::get(context);
  case TensorProto::DOUBLE:
    return Float64Type::get(context);
  case TensorProto::INT8:
    return IntegerType::get(context, 8);
  case TensorProto::INT16:
    return IntegerType::get(context, 16);
  case TensorProto::INT32:
    return IntegerType::get(context, 32);
  case TensorProto::INT64:
    return IntegerType::get(context, 64);
  case TensorProto::UINT8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case TensorProto::UINT16:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case TensorProto::UINT32:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case TensorProto::UINT64:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case TensorProto::FLOAT16:
    return Float16Type::get(context);
  case TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case TensorProto::UINT4:
    return IntegerType::get(context, 4, IntegerType::Unsigned);
  case TensorProto::INT4:
    return IntegerType::get(context, 4);
  case TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case TensorProto::UINT2:
    return IntegerType::get(context, 2, IntegerType::Unsigned);
  case TensorProto::INT2:
    return IntegerType::get(context, 2);
  case TensorProto::BOOL:
    return IntegerType::get(context, 1);
  default:
    return {};
  }
}

std::string autohet::onnx::nameOfElement(int32_t onnxType) {
  return TensorProto::DataType_IsValid(onnxType)
             ? TensorProto::DataType_Name(TensorProto::DataType(onnxType))
             : "type " + std::to_string(onnxType);
}

Type autohet::onnx::convertElementType(int32_t onnxType,
                                       const llvm::Twine &what, Location loc) {
  Type element = elementType(onnxType, loc.getContext());
  if (!element)
    emitError(loc) << what << " is " << nameOfElement(onnxType)
                   << ", which is not supported (numbers and BOOL are)";
  return element;
}

/// How many bits of a file an element takes: several small ones share a byte.
static uint64_t bitsOf(Type element) {
  return element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
}

/// Elements that share bytes, the first in the lowest bits: a byte each here.
static DenseElementsAttr fromPacked(RankedTensorType type, StringRef bytes) {
  unsigned width = type.getElementType().getIntOrFloatBitWidth();
  std::vector<char> elements(type.getNumElements());
  for (size_t i = 0; i < elements.size(); ++i) {
    size_t bit = i * width;
    elements[i] =
        char(uint8_t(bytes[bit / 8]) >> (bit % 8) & ((1u << width) - 1));
  }
  return DenseElementsAttr::getFromRawBuffer(type, elements);
}

/// The elements of a small tensor from its bytes.
static DenseElementsAttr fromBytes(RankedTensorType type, StringRef bytes) {
  if (bitsOf(type.getElementType()) < 8)
    return fromPacked(type, bytes);
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef<char>(bytes.data(), bytes.size()));
  SmallVector<bool> values;
  for (char byte : bytes)
    values.push_back(byte != 0);
  return DenseElementsAttr::get(type, values);
}

/// The elements of a small tensor from the field of its type.
static DenseElementsAttr fromFields(RankedTensorType type,
                                    const TensorProto &tensor) {
  Type element = type.getElementType();
  if (bitsOf(element) < 8) {
    // A byte of packed elements each.
    std::string bytes;
    for (int32_t value : tensor.int32_data())
      bytes.push_back(char(value));
    uint64_t bits = uint64_t(type.getNumElements()) * bitsOf(element);
    return bytes.size() == llvm::divideCeil(bits, 8) ? fromPacked(type, bytes)
                                                     : DenseElementsAttr();
  }
  auto make = [&](const auto &field) -> DenseElementsAttr {
    if (int64_t(field.size()) != type.getNumElements())
      return {};
    if (auto small = dyn_cast<FloatType>(element);
        small && small.getWidth() <= 16) {
      // Their bits, as integers.
      SmallVector<APFloat> values;
      for (auto value : field)
        values.push_back(
            APFloat(small.getFloatSemantics(),
                    APInt(small.getWidth(), uint64_t(int64_t(value)),
                          /*isSigned=*/false, /*implicitTrunc=*/true)));
      return DenseElementsAttr::get(type, values);
    }
    if (isa<FloatType>(element)) {
      SmallVector<APFloat> values;
      for (auto value : field)
        values.push_back(element.isF32() ? APFloat(float(value))
                                         : APFloat(double(value)));
      return DenseElementsAttr::get(type, values);
    }
    SmallVector<APInt> values;
    for (auto value : field)
      values.push_back(APInt(element.getIntOrFloatBitWidth(),
                             uint64_t(int64_t(value)),
                             /*isSigned=*/false, /*implicitTrunc=*/true));
    return DenseElementsAttr::get(type, values);
  };
  if (element.isF32())
    return make(tensor.float_data());
  if (element.isF64())
    return make(tensor.double_data());
  if (element.isUnsignedInteger(32) || element.isUnsignedInteger(64))
    return make(tensor.uint64_data());
  if (element.isInteger(64))
    return make(tensor.int64_data());
  return make(tensor.int32_data());
}

FailureOr<ByteRange> TensorReader::locateExternal(const TensorProto &tensor,
                                                  uint64_t expected,
                                                  const std::string &what,
                                                  Location loc,
                                                  std::string &file) {
  std::string location;
  ByteRange place{0, expected};
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
      continue;
    }
    uint64_t number = 0;
    if (entry.key() != "offset" && entry.key() != "length")
      continue; // checksum, basepath: nothing that we need
    if (StringRef(entry.value()).getAsInteger(10, number)) {
      emitError(loc) << what << ": external data has " << entry.key() << " '"
                     << entry.value() << "', wanted a number";
      return failure();
    }
    (entry.key() == "offset" ? place.offset : place.size) = number;
  }
  if (location.empty()) {
    emitError(loc) << what << ": external data names no file";
    return failure();
  }
  if (place.size != expected) {
    emitError(loc) << what << ": external data has " << place.size
                   << " bytes, wanted " << expected << " for its shape";
    return failure();
  }

  // A model must not make its reader open files elsewhere, by name or by link.
  namespace path = llvm::sys::path;
  SmallString<256> folder(path::parent_path(modelPath));
  if (folder.empty())
    folder = ".";
  SmallString<256> joined(folder);
  path::append(joined, location);
  SmallString<256> realFolder, realFile;
  bool exists = !llvm::sys::fs::real_path(joined, realFile);
  bool escapes = path::is_absolute(location);
  SmallString<256> relative(location);
  path::remove_dots(relative, /*remove_dot_dot=*/true);
  escapes |= StringRef(relative).starts_with("..");
  if (exists && !llvm::sys::fs::real_path(folder, realFolder)) {
    StringRef rest = realFile;
    escapes |= !rest.consume_front(realFolder) ||
               (realFolder != "/" && !rest.starts_with("/"));
  }
  if (escapes) {
    emitError(loc) << what << ": external data '" << location
                   << "' is outside the model's folder '" << folder << "'";
    return failure();
  }
  uint64_t fileSize = 0;
  if (!exists || llvm::sys::fs::file_size(joined, fileSize)) {
    emitError(loc) << what << ": external data '" << joined << "' is missing";
    return failure();
  }
  if (place.offset > fileSize || place.size > fileSize - place.offset) {
    emitError(loc) << what << ": external data '" << joined << "' has "
                   << fileSize << " bytes, wanted " << place.size
                   << " from offset " << place.offset << " on";
    return failure();
  }
  file = joined.str().str();
  return place;
}

FailureOr<Constant> TensorReader::read(const TensorProto &tensor,
                                       const TensorBytes &bytes,
                                       const llvm::Twine &whatTwine,
                                       Location loc, bool isParameter) {
  std::string what = whatTwine.str();
  Type element = convertElementType(tensor.data_type(), what, loc);
  if (!element)
    return failure();
  if (tensor.has_segment()) {
    emitError(loc) << what << " is written in segments, which is not supported";
    return failure();
  }
  Constant constant;
  uint64_t size = 1; // in elements, then in bytes
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  for (int64_t extent : shape)
    if (extent < 0 ||
        (extent > 0 && size > uint64_t(INT64_MAX) / 64 / extent)) {
      emitError(loc) << what << " has an impossible shape [" << shape << "]";
      return failure();
    } else {
      size *= extent;
    }
  size = llvm::divideCeil(size * bitsOf(element), 8);
  constant.type = RankedTensorType::get(shape, element);
  // What is packed becomes constants: nothing reads it in pieces.
  bool isWeight = isa<FloatType>(element) && bitsOf(element) >= 8 &&
                  constant.type.getNumElements() >= (isParameter ? 1 : 2);

  auto wrongSize = [&](uint64_t found) {
    emitError(loc) << what << " holds " << found << " bytes, wanted " << size
                   << " for " << constant.type;
    return failure();
  };

  if (tensor.data_location() == TensorProto::EXTERNAL) {
    auto place = locateExternal(tensor, size, what, loc, constant.file);
    if (failed(place))
      return failure();
    constant.place = *place;
    if (isWeight)
      return constant;
    auto buffer = llvm::MemoryBuffer::getFileSlice(constant.file, place->size,
                                                   place->offset);
    if (!buffer) {
      emitError(loc) << what << ": cannot read '" << constant.file
                     << "': " << buffer.getError().message();
      return failure();
    }
    constant.value = fromBytes(constant.type, (*buffer)->getBuffer());
    return constant;
  }

  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != size)
      return wrongSize(tensor.raw_data().size());
    if (isWeight && bytes.raw) {
      constant.file = modelPath;
      constant.place = *bytes.raw;
    } else {
      constant.value = fromBytes(constant.type, tensor.raw_data());
    }
    return constant;
  }
  if (isWeight && element.isF32() && bytes.floats) {
    if (uint64_t(tensor.float_data_size()) * 4 != size)
      return wrongSize(uint64_t(tensor.float_data_size()) * 4);
    if (bytes.floatPieces != 1 || bytes.floats->size != size) {
      emitError(loc) << what
                     << " has its float_data in several pieces: save the "
                        "model again with onnx.save";
      return failure();
    }
    constant.file = modelPath;
    constant.place = *bytes.floats;
    return constant;
  }
  constant.value = fromFields(constant.type, tensor);
  if (!constant.value) {
    emitError(loc) << what << " does not hold the "
                   << constant.type.getNumElements() << " elements of "
                   << constant.type;
    return failure();
  }
  return constant;
}
