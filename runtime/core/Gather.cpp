//===- Gather.cpp - whole tensors from the parts of all ranks ---------------===//

#include "core/Gather.h"

#include "core/Error.h"
#include "data/TensorFile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>

namespace autohet::runtime {

namespace {
// A piece as bytes: name, dtype, shape, box, payload; both ends are this code.
class Packer {
public:
  void number(int64_t value) {
    auto *first = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  }
  void data(const char *from, size_t size) {
    number(size);
    bytes.insert(bytes.end(), from, from + size);
  }
  void list(const std::vector<int64_t> &values) {
    number(values.size());
    for (int64_t value : values)
      number(value);
  }
  std::vector<char> bytes;
};

class Unpacker {
public:
  explicit Unpacker(const std::vector<char> &bytes) : bytes(bytes) {}
  bool atEnd() const { return position == bytes.size(); }
  int64_t number() {
    int64_t value;
    memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::vector<char> data() {
    size_t size = number();
    const char *from = take(size);
    return {from, from + size};
  }
  std::vector<int64_t> list() {
    std::vector<int64_t> values(checked(number(), 8));
    for (int64_t &value : values)
      value = number();
    return values;
  }

private:
  size_t checked(int64_t count, size_t elementBytes) {
    if (count < 0 || size_t(count) > (bytes.size() - position) / elementBytes)
      fail(AH_ERROR_PEER, "a gathered message is damaged");
    return count;
  }
  const char *take(size_t size) {
    checked(size, 1);
    position += size;
    return bytes.data() + position - size;
  }
  const std::vector<char> &bytes;
  size_t position = 0;
};
} // namespace

Piece readOutput(const Memory &memory, uint32_t output, uint64_t microbatch,
                 const void *from) {
  const Program &program = memory.program;
  const ah_port &port = program.outputs[output];
  const ah_program &header = program.header();
  Piece piece;
  piece.name = program.string(port.name);
  piece.dtype = port.dtype;
  piece.box.global.assign(port.global_shape, port.global_shape + port.rank);
  piece.box.offset.assign(port.box_offset, port.box_offset + port.rank);
  piece.box.size.assign(port.shape, port.shape + port.rank);
  if (port.batch_dim >= 0) {
    piece.box.global[port.batch_dim] = header.global_batch;
    piece.box.offset[port.batch_dim] =
        header.first_sample + microbatch * header.microbatch_size;
  }
  piece.bytes.resize(piece.box.elements() * dtypeBytes(port.dtype));
  check(memory.table.read(memory.device, piece.bytes.data(), from,
                          piece.bytes.size()));
  return piece;
}

void transferNow(const ah_worker_link &link, bool isSend, uint32_t peer,
                 uint32_t channel, void *data, uint64_t bytes,
                 const char *what) {
  ah_request request = {};
  request.peer = peer;
  request.is_send = isSend;
  request.tag = ah_tag(AH_TAG_GATHER, channel, 0);
  request.data = data;
  request.bytes = bytes;
  request.what = what;
  request.microbatch = -1;
  ah_status status = link.table->start(link.comm, &request);
  if (status != AH_IN_PROGRESS)
    check(status);
  check(link.table->wait(link.comm, &request));
}

std::vector<Piece> gatherPieces(const Program &program,
                                const ah_worker_link &link,
                                std::vector<Piece> pieces, const char *what) {
  if (!link.table)
    return pieces;
  uint32_t rank = program.header().rank, world = program.header().world_size;
  if (rank != 0) {
    Packer packer;
    for (const Piece &piece : pieces) {
      packer.data(piece.name.data(), piece.name.size());
      packer.number(piece.dtype);
      packer.list(piece.box.global);
      packer.list(piece.box.offset);
      packer.list(piece.box.size);
      packer.data(piece.bytes.data(), piece.bytes.size());
    }
    uint64_t size = packer.bytes.size();
    transferNow(link, true, 0, 0, &size, sizeof size, what);
    if (size > 0)
      transferNow(link, true, 0, 1, packer.bytes.data(), size, what);
    return {};
  }
  for (uint32_t peer = 1; peer < world; ++peer) {
    uint64_t size;
    transferNow(link, false, peer, 0, &size, sizeof size, what);
    std::vector<char> bytes(size);
    if (size > 0)
      transferNow(link, false, peer, 1, bytes.data(), size, what);
    Unpacker unpacker(bytes);
    while (!unpacker.atEnd()) {
      Piece piece;
      std::vector<char> name = unpacker.data();
      piece.name.assign(name.begin(), name.end());
      piece.dtype = unpacker.number();
      piece.box.global = unpacker.list();
      piece.box.offset = unpacker.list();
      piece.box.size = unpacker.list();
      piece.bytes = unpacker.data();
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

uint64_t agreeOnMost(const Program &program, const ah_worker_link &link,
                     uint64_t value, const char *what) {
  if (!link.table)
    return value;
  uint32_t rank = program.header().rank, world = program.header().world_size;
  if (rank != 0) {
    transferNow(link, true, 0, 0, &value, sizeof value, what);
    transferNow(link, false, 0, 1, &value, sizeof value, what);
    return value;
  }
  for (uint32_t peer = 1; peer < world; ++peer) {
    uint64_t theirs;
    transferNow(link, false, peer, 0, &theirs, sizeof theirs, what);
    value = std::max(value, theirs);
  }
  for (uint32_t peer = 1; peer < world; ++peer)
    transferNow(link, true, peer, 1, &value, sizeof value, what);
  return value;
}

std::vector<std::string> findCommonTexts(const Program &program,
                                         const ah_worker_link &link,
                                         const std::vector<std::string> &texts,
                                         const char *what) {
  std::set<std::string> mine(texts.begin(), texts.end());
  std::vector<Piece> pieces;
  for (const std::string &text : mine)
    pieces.push_back({text, AH_U8, Box::whole({0}), {}});
  std::map<std::string, uint32_t> ranks;
  for (const Piece &piece : gatherPieces(program, link, pieces, what))
    ++ranks[piece.name];
  std::vector<std::string> common;
  for (const std::string &text : mine)
    if (ranks[text] == program.header().world_size)
      common.push_back(text);
  return common;
}

void writePieces(const std::string &path, const std::vector<Piece> &pieces,
                 const Aliases &aliases) {
  std::map<std::string, std::vector<const Piece *>> byName;
  for (const Piece &piece : pieces)
    byName[piece.name].push_back(&piece);
  // The format has no way to say that two tensors are one.
  for (auto &[alias, name] : aliases)
    if (auto found = byName.find(name); found != byName.end())
      byName[alias] = found->second;
  std::vector<TensorSource> sources;
  // Holds the tensor that is being written.
  auto whole = std::make_shared<std::vector<char>>();
  for (auto &[name, parts] : byName) {
    const Piece *first = parts[0];
    sources.push_back(
        {name, first->dtype, first->box.global, [whole, parts = parts] {
           const Piece *first = parts[0];
           unsigned elementBytes = dtypeBytes(first->dtype);
           int64_t elements = Box::whole(first->box.global).elements();
           whole->assign(elements * elementBytes, 0);
           std::vector<char> covered(elements, 0);
           for (const Piece *part : parts) {
             if (part->box.global != first->box.global ||
                 part->dtype != first->dtype)
               fail(AH_ERROR_INTERNAL,
                    "tensor '%s': ranks disagree about its shape",
                    first->name.c_str());
             copyToGlobal(part->box, elementBytes, part->bytes.data(),
                          whole->data());
             std::vector<char> ones(part->box.elements(), 1);
             copyToGlobal(part->box, 1, ones.data(), covered.data());
           }
           if (const void *hole = memchr(covered.data(), 0, covered.size()))
             fail(
                 AH_ERROR_INTERNAL, "tensor '%s': no rank has element %lld",
                 first->name.c_str(),
                 (long long)(static_cast<const char *>(hole) - covered.data()));
           return static_cast<const void *>(whole->data());
         }});
  }
  writeTensors(path, sources);
}

std::string findDifferentCopies(const std::vector<Piece> &pieces) {
  struct Whole {
    std::vector<char> bytes, covered;
  };
  std::map<std::string, Whole> tensors;
  for (const Piece &piece : pieces) {
    unsigned elementBytes = dtypeBytes(piece.dtype);
    int64_t elements = Box::whole(piece.box.global).elements();
    Whole &whole = tensors[piece.name];
    if (whole.covered.empty()) {
      whole.bytes.resize(elements * elementBytes);
      whole.covered.resize(elements, 0);
    }
    std::vector<char> seen(piece.bytes.size()), covered(piece.box.elements());
    copyFromGlobal(piece.box, elementBytes, whole.bytes.data(), seen.data());
    copyFromGlobal(piece.box, 1, whole.covered.data(), covered.data());
    for (int64_t element = 0; element < piece.box.elements(); ++element)
      if (covered[element] &&
          memcmp(seen.data() + element * elementBytes,
                 piece.bytes.data() + element * elementBytes,
                 elementBytes) != 0)
        return format("'%s', element %lld of %s", piece.name.c_str(),
                      (long long)element, piece.box.text().c_str());
    copyToGlobal(piece.box, elementBytes, piece.bytes.data(),
                 whole.bytes.data());
    std::vector<char> ones(piece.box.elements(), 1);
    copyToGlobal(piece.box, 1, ones.data(), whole.covered.data());
  }
  return "";
}

} // namespace autohet::runtime
