//===- TensorFile.cpp - one tensor a file, and files of many ----------------===//
//
// The formats are read as strictly as safetensors: sizes must agree to the
// byte. ONNX's wire format needs so little here that it is read by hand: the
// runtime links no protobuf.
//
//===----------------------------------------------------------------------===//

#include "data/TensorFile.h"

#include "core/Error.h"
#include "data/Protobuf.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <unistd.h>

namespace autohet::runtime {

namespace {
struct FormatDtype {
  uint8_t dtype;
  const char *npy; // null: NumPy has none
  int onnx;        // TensorProto.DataType
};
} // namespace

static const FormatDtype formatDtypes[] = {{AH_F32, "<f4", 1},
                                           {AH_F16, "<f2", 10},
                                           {AH_BF16, nullptr, 16},
                                           {AH_F64, "<f8", 11},
                                           {AH_I8, "|i1", 3},
                                           {AH_U8, "|u1", 2},
                                           {AH_I16, "<i2", 5},
                                           {AH_U16, "<u2", 4},
                                           {AH_I32, "<i4", 6},
                                           {AH_I64, "<i8", 7},
                                           {AH_BOOL, "|b1", 9},
                                           {AH_U32, "<u4", 12},
                                           {AH_U64, "<u8", 13},
                                           {AH_F8_E4M3FN, nullptr, 17},
                                           {AH_F8_E4M3FNUZ, nullptr, 18},
                                           {AH_F8_E5M2, nullptr, 19},
                                           {AH_F8_E5M2FNUZ, nullptr, 20},
                                           {AH_U4, nullptr, 21},
                                           {AH_I4, nullptr, 22},
                                           {AH_F4_E2M1, nullptr, 23},
                                           {AH_U2, nullptr, 25},
                                           {AH_I2, nullptr, 26}};

/// Bits of an element in ONNX's files, where those of less than a byte are
/// packed, the first one lowest.
static unsigned packedBits(uint8_t dtype) {
  switch (dtype) {
  case AH_U4:
  case AH_I4:
  case AH_F4_E2M1:
    return 4;
  case AH_U2:
  case AH_I2:
    return 2;
  default:
    return 8 * dtypeBytes(dtype);
  }
}

static std::vector<char> unpack(uint8_t dtype, const char *from,
                                int64_t count) {
  unsigned bits = packedBits(dtype), perByte = 8 / bits;
  bool isSigned = dtype == AH_I4 || dtype == AH_I2;
  std::vector<char> elements(count);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t value = uint8_t(from[i / perByte]) >> (i % perByte * bits);
    value <<= 8 - bits;
    elements[i] = isSigned ? int8_t(value) >> (8 - bits) : value >> (8 - bits);
  }
  return elements;
}

static std::string pack(uint8_t dtype, const char *from, int64_t count) {
  unsigned bits = packedBits(dtype), perByte = 8 / bits;
  std::string bytes((count + perByte - 1) / perByte, 0);
  for (int64_t i = 0; i < count; ++i)
    bytes[i / perByte] |= (uint8_t(from[i]) & ((1 << bits) - 1))
                          << (i % perByte * bits);
  return bytes;
}

static bool endsWith(const std::string &text, const char *end) {
  size_t length = strlen(end);
  return text.size() >= length &&
         text.compare(text.size() - length, length, end) == 0;
}

[[noreturn]] static void wrong(const std::string &path,
                               const std::string &what) {
  fail(AH_ERROR_INPUT, "'%s': %s", path.c_str(), what.c_str());
}

/// The bytes of `shape`, which came from a file.
static uint64_t checkedBytes(const std::string &path,
                             const std::vector<int64_t> &shape, uint8_t dtype) {
  uint64_t bytes = dtypeBytes(dtype);
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
      wrong(path, "shape " + shapeText(shape.data(), shape.size()) +
                      " is impossible");
  return bytes;
}

//===----------------------------------------------------------------------===//
// NumPy
//===----------------------------------------------------------------------===//

/// What follows `'key':` in a header, which is a Python dict of one line.
static std::string npyField(const std::string &path, const std::string &header,
                            const char *key, const char *begin,
                            const char *end) {
  size_t at = header.find(std::string("'") + key + "'");
  at = at == std::string::npos ? at : header.find(':', at);
  size_t from = at == std::string::npos ? at : header.find(begin, at);
  size_t to = from == std::string::npos
                  ? from
                  : header.find_first_of(end, from + strlen(begin));
  if (to == std::string::npos)
    wrong(path, std::string("the header of an .npy file lacks '") + key + "'");
  return header.substr(from + strlen(begin), to - from - strlen(begin));
}

void TensorFiles::readNpy(File &file) {
  const char *data = file.mapped->data();
  uint64_t size = file.mapped->size();
  if (size < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
    wrong(file.path, "is no .npy file");
  bool isFirst = data[6] == 1;
  uint32_t length = 0;
  memcpy(&length, data + 8, isFirst ? 2 : 4);
  uint64_t start = (isFirst ? 10 : 12) + uint64_t(length);
  if (start > size)
    wrong(file.path, "is truncated in its header");
  std::string header(data + (isFirst ? 10 : 12), length);
  file.info.dtypeText = npyField(file.path, header, "descr", "'", "'");
  std::string order = npyField(file.path, header, "fortran_order", ":", ",}");
  if (order.find("False") == std::string::npos)
    wrong(file.path, "is in Fortran's order, wanted C's: save "
                     "numpy.ascontiguousarray of it");
  file.info.dtype = foreignDtype;
  for (const FormatDtype &known : formatDtypes)
    if (known.npy && file.info.dtypeText == known.npy)
      file.info.dtype = known.dtype;
  if (file.info.dtype == foreignDtype)
    wrong(file.path, "has elements '" + file.info.dtypeText +
                         "', wanted little-endian numbers or booleans");
  std::string shape = npyField(file.path, header, "shape", "(", ")");
  for (const char *at = shape.c_str(); *at;) {
    char *end = nullptr;
    int64_t extent = strtoll(at, &end, 10);
    if (end == at)
      wrong(file.path, "has a shape (" + shape + ")");
    file.info.shape.push_back(extent);
    at = end + strspn(end, ", ");
  }
  file.info.offset = start;
  file.info.bytes = checkedBytes(file.path, file.info.shape, file.info.dtype);
  if (file.info.bytes != size - start)
    wrong(
        file.path,
        format(
            "holds %llu bytes, wanted %llu for %s",
            (unsigned long long)(size - start),
            (unsigned long long)file.info.bytes,
            shapeText(file.info.shape.data(), file.info.shape.size()).c_str()));
}

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

void TensorFiles::readProto(File &file) {
  ProtobufReader wire(file.path, file.mapped->data(), file.mapped->size());
  int64_t type = 0;
  std::vector<uint64_t> integers;
  bool isRaw = false;
  while (wire.next()) {
    switch (wire.field) {
    case 1:
      wire.integers([&](uint64_t v) { file.info.shape.push_back(v); });
      break;
    case 2:
      type = wire.value;
      break;
    case 5: // int32_data, also of everything narrower
    case 7:
    case 11:
      wire.integers([&](uint64_t v) { integers.push_back(v); });
      break;
    case 4: // float_data, double_data: the elements themselves
    case 10:
      file.decoded.insert(file.decoded.end(), wire.bytes,
                          wire.bytes + wire.length);
      break;
    case 9:
      isRaw = true;
      file.info.offset = wire.bytes - file.mapped->data();
      file.info.bytes = wire.length;
      break;
    case 13:
      wrong(file.path, "has its data in another file, which is not supported");
    default:
      break;
    }
  }
  if (!type)
    wrong(file.path, "holds no tensor: ONNX's TensorProto has an element type");
  file.info.dtype = foreignDtype;
  for (const FormatDtype &known : formatDtypes)
    if (known.onnx == type)
      file.info.dtype = known.dtype;
  if (file.info.dtype == foreignDtype)
    wrong(file.path, format("holds ONNX's element type %lld, which is not "
                            "supported",
                            (long long)type));
  file.info.dtypeText = dtypeName(file.info.dtype);
  unsigned width = dtypeBytes(file.info.dtype);
  for (uint64_t v : integers) // little endian
    file.decoded.insert(file.decoded.end(), reinterpret_cast<char *>(&v),
                        reinterpret_cast<char *>(&v) + width);
  uint64_t bytes = checkedBytes(file.path, file.info.shape, file.info.dtype);
  uint64_t perByte = 8 / std::min(8u, packedBits(file.info.dtype));
  uint64_t stored = (bytes + perByte - 1) / perByte;
  uint64_t found = isRaw ? file.info.bytes : file.decoded.size();
  if (found != stored)
    wrong(file.path,
          format("holds %llu bytes, wanted %llu for its shape",
                 (unsigned long long)found, (unsigned long long)stored));
  if (perByte > 1)
    file.decoded = unpack(file.info.dtype,
                          isRaw ? file.mapped->data() + file.info.offset
                                : file.decoded.data(),
                          bytes);
  file.info.bytes = bytes;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TensorFiles::TensorFiles(const std::vector<std::string> &specs) {
  for (const std::string &spec : specs)
    open(spec);
}

void TensorFiles::open(const std::string &spec) {
  File file;
  file.path = spec;
  // A file of many may have '=' in its path.
  size_t equals = spec.find('=');
  if (equals != std::string::npos && access(spec.c_str(), F_OK) != 0) {
    file.name = spec.substr(0, equals);
    file.path = spec.substr(equals + 1);
  }
  if (endsWith(file.path, ".npy") || endsWith(file.path, ".pb") ||
      endsWith(file.path, ".raw")) {
    if (file.name.empty())
      fail(AH_ERROR_INPUT, "'%s' holds one tensor: say of which input, NAME=%s",
           file.path.c_str(), file.path.c_str());
    file.info.name = file.name;
    file.mapped = std::make_unique<MappedFile>(file.path);
    if (endsWith(file.path, ".npy"))
      readNpy(file);
    else if (endsWith(file.path, ".pb"))
      readProto(file);
    else
      file.isRaw = true;
  } else {
    try {
      file.many = std::make_unique<SafetensorsFile>(file.path);
    } catch (const Error &error) {
      if (endsWith(file.path, ".safetensors") ||
          access(file.path.c_str(), R_OK) != 0)
        throw;
      fail(error.status,
           "%s; of one tensor each, .npy, .pb and .raw are read, too",
           error.what());
    }
    if (!file.name.empty() && !file.many->find(file.name) &&
        file.many->tensors().size() != 1)
      (void)file.many->get(file.name); // throws, listing what is there
  }
  files.push_back(std::move(file));
}

std::optional<FileTensor> TensorFiles::find(const Program &program,
                                            const ah_port &port) {
  std::string name = program.string(port.name);
  for (File &file : files) {
    if (!file.name.empty() && file.name != name)
      continue;
    if (file.many) {
      const TensorInfo *info = file.many->find(name);
      if (!info && !file.name.empty())
        info = &file.many->tensors()[0];
      if (info)
        return FileTensor{"'" + file.path + "', tensor '" + info->name + "'",
                          *info, file.many->data(*info)};
      continue;
    }
    TensorInfo info = file.info;
    if (file.isRaw) {
      info.dtype = port.dtype;
      info.dtypeText = dtypeName(port.dtype);
      info.shape.assign(port.shape, port.shape + port.rank);
      info.bytes = file.mapped->size();
      uint64_t one = checkedBytes(file.path, info.shape, port.dtype);
      // Any number of samples; whoever reads it says how many there must be.
      if (port.batch_dim >= 0 && one)
        info.shape[port.batch_dim] =
            info.bytes / (one / port.shape[port.batch_dim]);
      if (checkedBytes(file.path, info.shape, port.dtype) != info.bytes)
        wrong(file.path, format("has %llu bytes, wanted %s%llu for %s %s",
                                (unsigned long long)info.bytes,
                                port.batch_dim >= 0 ? "a multiple of " : "",
                                (unsigned long long)one, dtypeName(port.dtype),
                                shapeText(port.shape, port.rank).c_str()));
    }
    const char *data = file.decoded.empty() ? file.mapped->data() + info.offset
                                            : file.decoded.data();
    return FileTensor{"'" + file.path + "'", info, data};
  }
  return std::nullopt;
}

FileTensor TensorFiles::first() const {
  const File &file = files.front();
  if (file.many || file.isRaw)
    fail(AH_ERROR_INPUT, "'%s': wanted one tensor as .npy or .pb",
         file.path.c_str());
  return {"'" + file.path + "'", file.info,
          file.decoded.empty() ? file.mapped->data() + file.info.offset
                               : file.decoded.data()};
}

std::vector<std::string>
TensorFiles::findUnused(const std::vector<std::string> &names) const {
  std::set<std::string> known(names.begin(), names.end());
  std::vector<std::string> texts;
  auto look = [&](const File &file, const std::string &name) {
    if (!known.count(name))
      texts.push_back(
          format("'%s': the program has no input '%s'; it is not used",
                 file.path.c_str(), name.c_str()));
  };
  for (const File &file : files) {
    if (!file.name.empty())
      look(file, file.name);
    else
      for (const TensorInfo &info : file.many->tensors())
        look(file, info.name);
  }
  return texts;
}

std::string readTensorFile(const std::string &path, TensorInfo &info,
                           std::vector<char> &bytes) noexcept {
  try {
    TensorFiles files({"tensor=" + path});
    FileTensor tensor = files.first();
    info = tensor.info;
    bytes.assign(tensor.data, tensor.data + tensor.info.bytes);
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static double fromHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                     : exponent == 31
                         ? (mantissa ? NAN : INFINITY)
                         : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static double fromBrainFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/// Copies, because a tensor in a file need not be aligned.
template <typename T, typename Convert>
static std::vector<double> widen(const char *data, int64_t count,
                                 Convert convert) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) {
    T value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    values[i] = convert(value);
  }
  return values;
}
template <typename T>
static std::vector<double> widen(const char *data, int64_t count) {
  return widen<T>(data, count, [](T value) { return double(value); });
}

std::vector<double> toDoubles(uint8_t dtype, const char *data, int64_t count) {
  switch (dtype) {
  case AH_F32:
    return widen<float>(data, count);
  case AH_F64:
    return widen<double>(data, count);
  case AH_F16:
    return widen<uint16_t>(data, count, fromHalf);
  case AH_BF16:
    return widen<uint16_t>(data, count, fromBrainFloat);
  case AH_I8:
    return widen<int8_t>(data, count);
  case AH_U8:
  case AH_BOOL:
    return widen<uint8_t>(data, count);
  case AH_I16:
    return widen<int16_t>(data, count);
  case AH_U16:
    return widen<uint16_t>(data, count);
  case AH_I32:
    return widen<int32_t>(data, count);
  case AH_U32:
    return widen<uint32_t>(data, count);
  case AH_I64:
    return widen<int64_t>(data, count);
  case AH_U64:
    return widen<uint64_t>(data, count);
  default:
    fail(AH_ERROR_INPUT, "tensors of dtype %s hold no numbers known here",
         dtypeName(dtype));
  }
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string npyHeader(const std::string &path,
                             const TensorSource &tensor) {
  const char *descr = nullptr;
  for (const FormatDtype &known : formatDtypes)
    if (known.dtype == tensor.dtype)
      descr = known.npy;
  if (!descr)
    fail(AH_ERROR_INPUT,
         "'%s': NumPy has no %s, of which output '%s' is: write it as .pb",
         path.c_str(), dtypeName(tensor.dtype), tensor.name.c_str());
  std::string shape;
  for (int64_t extent : tensor.shape)
    shape += std::to_string(extent) + ", ";
  std::string header =
      format("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr,
             shape.c_str());
  // The data begins at a multiple of 64.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  uint16_t length = header.size();
  std::string result("\x93NUMPY\x01\x00", 8);
  result.append(reinterpret_cast<char *>(&length), 2);
  return result + header;
}

static void appendVarint(std::string &to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to += char(value | 0x80);
  to += char(value);
}

static std::string protoHeader(const TensorSource &tensor, uint64_t bytes) {
  std::string result;
  auto field = [&](unsigned number, unsigned type, uint64_t value) {
    appendVarint(result, number << 3 | type);
    appendVarint(result, value);
  };
  for (int64_t extent : tensor.shape)
    field(1, 0, extent);
  for (const FormatDtype &known : formatDtypes)
    if (known.dtype == tensor.dtype)
      field(2, 0, known.onnx);
  field(8, 2, tensor.name.size());
  result += tensor.name;
  field(9, 2, bytes);
  return result;
}

static void writeOne(const std::string &path, const TensorSource &tensor) {
  uint64_t bytes = elementCount(tensor.shape.data(), tensor.shape.size()) *
                   dtypeBytes(tensor.dtype);
  std::string header;
  if (endsWith(path, ".npy"))
    header = npyHeader(path, tensor);
  else if (endsWith(path, ".pb"))
    header = protoHeader(tensor, bytes);
  else if (!endsWith(path, ".raw"))
    return writeSafetensors(path, {tensor});
  const void *data = tensor.bytes();
  std::string packed;
  if (packedBits(tensor.dtype) < 8 && endsWith(path, ".pb")) {
    packed = pack(tensor.dtype, static_cast<const char *>(data), bytes);
    header = protoHeader(tensor, packed.size());
    data = packed.data(), bytes = packed.size();
  }
  AtomicFile file(path);
  file.write(header.data(), header.size());
  file.write(data, bytes);
  file.commit();
}

void writeTensors(const std::string &path,
                  const std::vector<TensorSource> &tensors) {
  const std::string mark = "{name}";
  size_t place = path.find(mark);
  bool holdsOne =
      endsWith(path, ".npy") || endsWith(path, ".pb") || endsWith(path, ".raw");
  if (place == std::string::npos) {
    if (!holdsOne)
      return writeSafetensors(path, tensors);
    if (tensors.size() == 1)
      return writeOne(path, tensors[0]);
    fail(AH_ERROR_INPUT,
         "'%s' can hold one tensor, and there are %zu: put {name} into the "
         "file's name, or write .safetensors",
         path.c_str(), tensors.size());
  }
  std::set<std::string> written;
  for (const TensorSource &tensor : tensors) {
    std::string name = tensor.name;
    for (char &c : name)
      if (c == '/')
        c = '_';
    std::string file = path;
    file.replace(place, mark.size(), name);
    if (!written.insert(file).second)
      fail(AH_ERROR_INPUT, "two outputs would be written to '%s'",
           file.c_str());
    writeOne(file, tensor);
  }
}

} // namespace autohet::runtime
