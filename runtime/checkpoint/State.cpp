//===- State.cpp - a running device's state, saved and loaded ---------------===//

#include "checkpoint/State.h"

#include "core/Error.h"
#include "core/Gather.h"
#include "data/Checksum.h"

#include <cerrno>
#include <cstring>
#include <set>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace autohet::runtime {

static void makeFolder(const std::string &path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    fail(errno == ENOSPC ? AH_ERROR_NO_SPACE : AH_ERROR_SYSTEM,
         "cannot make the checkpoint folder '%s': %s", path.c_str(),
         strerror(errno));
}

void checkCheckpointFolder(const std::string &folder, bool makes,
                           uint32_t rank) {
  if (makes)
    makeFolder(folder);
  if (access(folder.c_str(), F_OK) == 0)
    checkWritable(folder + "/rank-" + std::to_string(rank));
}

namespace {
/// What of a parameter lies in which buffer.
struct StatePart {
  SliceKind kind;
  uint32_t buffer;
};
} // namespace

static std::vector<StatePart> partsOf(const ah_parameter &parameter) {
  std::vector<StatePart> parts = {
      {SliceKind::Parameter, parameter.parameter_buffer}};
  for (int index = 0; index < 2; ++index)
    if (parameter.state_buffers[index] != AH_NO_INDEX)
      parts.push_back({index ? SliceKind::Square : SliceKind::Mean,
                       parameter.state_buffers[index]});
  return parts;
}

// A name that no earlier attempt has used: the files of a valid checkpoint of
// the same step stay untouched until a new manifest replaces the old one.
static std::string uniqueFileName(uint32_t rank) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return format("rank-%04u-%llx%05lx.safetensors", rank,
                (unsigned long long)now.tv_sec, now.tv_nsec / 1000);
}

bool isSavedHere(const Program &program, const ah_parameter &parameter,
                 const std::set<std::string> &frozen) {
  return parameter.owned || (program.header().replica == 0 &&
                             frozen.count(program.string(parameter.name)));
}

static std::vector<SliceRecord>
writeSlices(const Memory &memory, const std::string &folder,
            const std::set<std::string> &frozen) {
  const Program &program = memory.program;
  std::vector<SliceRecord> records;
  std::vector<StatePart> parts;
  std::string file = uniqueFileName(program.header().rank);
  for (const ah_parameter &parameter : program.parameters) {
    if (!isSavedHere(program, parameter, frozen))
      continue;
    for (const StatePart &part : partsOf(parameter)) {
      records.push_back({program.string(parameter.name), part.kind,
                         parameter.dtype, Box::of(parameter), file, 0});
      parts.push_back(part);
    }
  }
  if (records.empty())
    return records;
  std::vector<TensorSource> sources;
  std::vector<char> bytes;
  for (size_t index = 0; index < records.size(); ++index)
    sources.push_back({records[index].key(), records[index].dtype,
                       records[index].box.size, [&, index]() -> const void * {
                         SliceRecord &record = records[index];
                         bytes = memory.read(parts[index].buffer,
                                             record.box.elements() *
                                                 dtypeBytes(record.dtype));
                         record.checksum =
                             checksum64(bytes.data(), bytes.size());
                         return bytes.data();
                       }});
  // An empty slice is never asked for its bytes.
  for (SliceRecord &record : records)
    record.checksum = checksum64("", 0);
  writeSafetensors(folder + "/" + file, sources);
  return records;
}

// By rank 0: collects what all ranks have written and makes it a checkpoint.
static void commit(const std::string &folder, CheckpointManifest manifest,
                   const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces) {
    std::string text(piece.bytes.begin(), piece.bytes.end());
    for (SliceRecord &record : parseRecords(text, "a rank's list of slices")) {
      if (manifest.files.empty() || manifest.files.back().name != record.file) {
        struct stat status;
        std::string path = folder + "/" + record.file;
        // Each rank has written it; rank 0 must see it, too.
        if (stat(path.c_str(), &status) != 0)
          fail(AH_ERROR_NOT_FOUND,
               "rank 0 does not see '%s', which another rank has written: "
               "checkpoints need "
               "a folder that all nodes share",
               path.c_str());
        manifest.files.push_back({record.file, uint64_t(status.st_size)});
      }
      manifest.slices.push_back(std::move(record));
    }
  }
  // Tables may have other names, too, and are not saved.
  std::set<std::string> saved;
  for (const SliceRecord &record : manifest.slices)
    saved.insert(record.name);
  for (auto alias = manifest.aliases.begin(); alias != manifest.aliases.end();)
    alias = saved.count(alias->second) ? std::next(alias)
                                       : manifest.aliases.erase(alias);
  std::string path = folder + "/manifest.json";
  std::vector<CheckpointFile> old;
  try {
    if (access(path.c_str(), F_OK) == 0)
      old = CheckpointManifest::read(path).files;
  } catch (const Error &) {
    // A damaged one of this step is replaced, too; which files were its own,
    // nobody can say.
  }
  std::string text = manifest.text();
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
  for (const CheckpointFile &replaced : old)
    unlink((folder + "/" + replaced.name).c_str());
}

void saveCheckpoint(const Memory &memory, const ah_worker_link &link,
                    const std::string &folder, const CheckpointManifest &head,
                    const std::set<std::string> &frozen) {
  std::string stepFolder = folder + "/" + stepFolderName(head.step);
  makeFolder(folder);
  makeFolder(stepFolder);
  std::string text = recordsText(writeSlices(memory, stepFolder, frozen));
  Piece piece{"slices", AH_U8, Box::whole({int64_t(text.size())}), {}};
  piece.bytes.assign(text.begin(), text.end());
  std::vector<Piece> pieces =
      gatherPieces(memory.program, link, {std::move(piece)}, "checkpoint");
  if (memory.program.header().rank == 0)
    commit(stepFolder, head, pieces);
  // Nobody goes on, or leaves, before it is one.
  broadcast(memory, link, head.step, "checkpoint");
}

std::vector<std::string> keepCheckpoints(const std::string &folder,
                                         uint64_t keep) {
  std::vector<std::string> warnings;
  uint64_t complete = 0;
  for (const FoundCheckpoint &one : findCheckpoints(folder))
    try {
      if (one.complete && ++complete > keep)
        removeCheckpoint(one.folder);
    } catch (const Error &error) {
      warnings.push_back(format("the older checkpoint '%s' is not removed: %s",
                                one.folder.c_str(), error.what()));
    }
  return warnings;
}

uint64_t broadcast(const Memory &memory, const ah_worker_link &link,
                   uint64_t value, const char *what) {
  if (!link.table)
    return value;
  const ah_program &header = memory.program.header();
  uint32_t first = header.rank == 0 ? 1 : 0,
           end = header.rank == 0 ? header.world_size : 1;
  for (uint32_t peer = first; peer < end; ++peer)
    transferNow(link, header.rank == 0, peer, 2, &value, sizeof value, what);
  return value;
}

void loadCheckpoint(Memory &memory, CheckpointReader &checkpoint) {
  const Program &program = memory.program;
  const ah_program &header = program.header();
  const char *path = checkpoint.folder().c_str();
  checkJob(checkpoint.manifest(), checkpoint.folder(),
           {header.structure_hash, header.global_batch,
            ah_optimizer(header.optimizer)});
  for (const ah_parameter &parameter : program.parameters) {
    std::string name = program.string(parameter.name);
    Box box = Box::of(parameter);
    std::vector<char> packed(box.elements() * dtypeBytes(parameter.dtype));
    for (const StatePart &part : partsOf(parameter)) {
      bool isParameter = part.kind == SliceKind::Parameter;
      if (!isParameter && !parameter.owned)
        continue;
      if (checkpoint.read(name, part.kind, parameter.dtype, box, packed.data()))
        memory.write(part.buffer, packed.data(), packed.size());
      else if (parameter.trained)
        fail(AH_ERROR_INPUT, "checkpoint '%s' has no %s of '%s'", path,
             sliceKindName(part.kind), name.c_str());
    }
  }
}

} // namespace autohet::runtime
