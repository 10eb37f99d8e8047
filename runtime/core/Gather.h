//===- Gather.h - whole tensors from the parts of all ranks ------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_GATHER_H
#define AUTOHET_RUNTIME_CORE_GATHER_H

#include "autohet/runtime/comm.h"
#include "core/Memory.h"
#include "core/Program.h"
#include "data/Box.h"
#include "data/Safetensors.h"

#include <string>
#include <vector>

namespace autohet::runtime {

/// A part of a named tensor, as one rank holds it.
struct Piece {
  std::string name;
  uint8_t dtype = 0;
  Box box;
  std::vector<char> bytes;
};

/// One microbatch of an output, at its place in the global batch.
Piece readOutput(const Memory &memory, uint32_t output, uint64_t microbatch,
                 const void *from);

/// One transfer outside of steps; sleeps until it has ended.
void transferNow(const ah_worker_link &link, bool isSend, uint32_t peer,
                 uint32_t channel, void *data, uint64_t bytes,
                 const char *what);

/// Sends this rank's pieces to rank 0, which gets those of all ranks; the
/// others get none. Every rank calls it, outside of steps.
std::vector<Piece> gatherPieces(const Program &program,
                                const ah_worker_link &link,
                                std::vector<Piece> pieces, const char *what);

/// The largest of all ranks' values. Every rank calls it, outside of steps.
uint64_t agreeOnMost(const Program &program, const ah_worker_link &link,
                     uint64_t value, const char *what);

/// The texts that every rank has, on rank 0; the others get none. Every rank
/// calls it, outside of steps.
std::vector<std::string> findCommonTexts(const Program &program,
                                         const ah_worker_link &link,
                                         const std::vector<std::string> &texts,
                                         const char *what);

/// Puts pieces together and writes them (writeTensors), sorted by name; a
/// tensor of which `aliases` has other names is there under each. Throws
/// AH_ERROR_INTERNAL where an element is missing.
void writePieces(const std::string &path, const std::vector<Piece> &pieces,
                 const Aliases &aliases = {});

/// Compares pieces of the same tensor where they overlap; the first difference
/// in words, or nothing.
std::string findDifferentCopies(const std::vector<Piece> &pieces);

} // namespace autohet::runtime

#endif
