//===- Reader.cpp - finds and reads checkpoints -----------------------------===//

#include "checkpoint/Checkpoint.h"
#include "core/Error.h"
#include "core/Program.h"
#include "data/Checksum.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace autohet::runtime {

CheckpointReader::CheckpointReader(const std::string &folder)
    : path(folder), content(CheckpointManifest::ofFolder(folder)) {
  checkComplete(content, path);
  for (const CheckpointFile &file : content.files) {
    std::string name = path + "/" + file.name;
    struct stat status;
    if (stat(name.c_str(), &status) != 0)
      fail(AH_ERROR_INPUT, "checkpoint '%s': its file '%s' is missing (%s)",
           path.c_str(), file.name.c_str(), strerror(errno));
    if (uint64_t(status.st_size) != file.bytes)
      fail(AH_ERROR_INPUT, "checkpoint '%s': '%s' has %lld bytes, wanted %llu",
           path.c_str(), file.name.c_str(), (long long)status.st_size,
           (unsigned long long)file.bytes);
  }
  for (const SliceRecord &slice : content.slices)
    byName.emplace(std::string(sliceKindName(slice.kind)) + "/" + slice.name,
                   &slice);
}

const char *CheckpointReader::data(const SliceRecord &slice) {
  auto file = files.find(slice.file);
  if (file == files.end())
    file = files.emplace(slice.file, SafetensorsFile(path + "/" + slice.file))
               .first;
  const TensorInfo &info = file->second.get(slice.key());
  if (info.dtype != slice.dtype || info.shape != slice.box.size)
    fail(AH_ERROR_INPUT,
         "checkpoint '%s': '%s' in '%s' is %s %s, the manifest says %s %s",
         path.c_str(), slice.key().c_str(), slice.file.c_str(),
         info.dtypeText.c_str(),
         shapeText(info.shape.data(), info.shape.size()).c_str(),
         dtypeName(slice.dtype),
         shapeText(slice.box.size.data(), slice.box.size.size()).c_str());
  const char *bytes = file->second.data(info);
  bool &isGood = verified[&slice];
  if (!isGood) {
    uint64_t found = checksum64(bytes, info.bytes);
    if (found != slice.checksum)
      fail(AH_ERROR_INPUT,
           "checkpoint '%s': '%s' in '%s' is damaged: it is %s, wanted %s",
           path.c_str(), slice.key().c_str(), slice.file.c_str(),
           checksumText(found).c_str(), checksumText(slice.checksum).c_str());
    isGood = true;
  }
  return bytes;
}

void CheckpointReader::verify(double seconds) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  for (const SliceRecord &slice : content.slices) {
    data(slice);
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds)
      return;
  }
}

// The part of `box` that is in `other`, relative to `to`'s offset and shape.
static Box overlap(const Box &box, const Box &other, const Box &to) {
  Box result;
  result.global = to.size;
  for (size_t dim = 0; dim < box.size.size(); ++dim) {
    int64_t begin = std::max(box.offset[dim], other.offset[dim]);
    int64_t end = std::min(box.offset[dim] + box.size[dim],
                           other.offset[dim] + other.size[dim]);
    result.offset.push_back(begin - to.offset[dim]);
    result.size.push_back(std::max<int64_t>(0, end - begin));
  }
  return result;
}

bool CheckpointReader::read(const std::string &name, SliceKind kind,
                            uint8_t dtype, const Box &box, char *packed) {
  auto [first, last] =
      byName.equal_range(std::string(sliceKindName(kind)) + "/" + name);
  if (first == last)
    return false;
  unsigned elementBytes = dtypeBytes(dtype);
  std::vector<char> covered(box.elements(), 0);
  for (auto found = first; found != last; ++found) {
    const SliceRecord &slice = *found->second;
    if (slice.box.global != box.global || slice.dtype != dtype)
      fail(AH_ERROR_MISMATCH,
           "checkpoint '%s': '%s' is %s %s, the program has %s %s",
           path.c_str(), name.c_str(), dtypeName(slice.dtype),
           shapeText(slice.box.global.data(), slice.box.global.size()).c_str(),
           dtypeName(dtype),
           shapeText(box.global.data(), box.global.size()).c_str());
    Box from = overlap(box, slice.box, slice.box),
        to = overlap(box, slice.box, box);
    int64_t elements = from.elements();
    if (elements == 0)
      continue;
    std::vector<char> part(elements * elementBytes), ones(elements, 1);
    copyFromGlobal(from, elementBytes, data(slice), part.data());
    copyToGlobal(to, elementBytes, part.data(), packed);
    copyToGlobal(to, 1, ones.data(), covered.data());
  }
  if (memchr(covered.data(), 0, covered.size()))
    fail(AH_ERROR_INPUT,
         "checkpoint '%s' has '%s' only in part: %s is not covered",
         path.c_str(), name.c_str(), box.text().c_str());
  return true;
}

/// The number in "step-00000020"; nothing where it is another name, "step-20"
/// too: a resumed run would not find it.
static std::optional<uint64_t> stepOfName(std::string_view name) {
  uint64_t step = 0;
  if (name.substr(0, 5) != "step-")
    return std::nullopt;
  const char *last = name.data() + name.size();
  auto [end, error] = std::from_chars(name.data() + 5, last, step);
  if (error != std::errc() || end != last || stepFolderName(step) != name)
    return std::nullopt;
  return step;
}

/// Whether there is no such file. One that may not be looked at is there.
static bool isMissing(const std::string &path) {
  struct stat status;
  return lstat(path.c_str(), &status) != 0 &&
         (errno == ENOENT || errno == ENOTDIR);
}

CheckpointManifest CheckpointManifest::ofFolder(const std::string &folder) {
  CheckpointManifest manifest = read(folder + "/manifest.json");
  std::string_view name = folder;
  while (!name.empty() && name.back() == '/')
    name.remove_suffix(1);
  // A copy may have any other name.
  std::optional<uint64_t> step = stepOfName(name.substr(name.rfind('/') + 1));
  if (step && *step != manifest.step)
    fail(AH_ERROR_INPUT,
         "checkpoint '%s': its manifest is of step %llu, its folder's name of "
         "step %llu",
         folder.c_str(), (unsigned long long)manifest.step,
         (unsigned long long)*step);
  return manifest;
}

std::vector<FoundCheckpoint> findCheckpoints(const std::string &folder) {
  std::vector<FoundCheckpoint> found;
  std::unique_ptr<DIR, int (*)(DIR *)> directory(opendir(folder.c_str()),
                                                 closedir);
  if (!directory)
    fail(errno == ENOENT ? AH_ERROR_NOT_FOUND : AH_ERROR_SYSTEM,
         "cannot read the checkpoints in '%s': %s", folder.c_str(),
         strerror(errno));
  while (dirent *entry = readdir(directory.get())) {
    std::optional<uint64_t> step = stepOfName(entry->d_name);
    if (!step)
      continue;
    FoundCheckpoint one;
    one.step = *step;
    one.folder = folder + "/" + entry->d_name;
    one.complete = !isMissing(one.folder + "/manifest.json");
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.step > b.step; });
  return found;
}

std::optional<FoundCheckpoint> findOther(const std::string &folder,
                                         uint64_t step) {
  for (FoundCheckpoint &one : findCheckpoints(folder)) {
    if (!one.complete || one.step == step)
      continue;
    try {
      CheckpointReader reader(one.folder);
      return std::move(one);
    } catch (const Error &) {
      // Not one to point to.
    }
  }
  return std::nullopt;
}

void checkJob(const CheckpointManifest &manifest, const std::string &folder,
              const CheckpointJob &job) {
  const char *path = folder.c_str();
  if (manifest.structureHash != job.structureHash)
    fail(AH_ERROR_MISMATCH,
         "checkpoint '%s' is of another model: structure %016llx, the "
         "program's is %016llx",
         path, (unsigned long long)manifest.structureHash,
         (unsigned long long)job.structureHash);
  if (job.kind && manifest.optimizer != *job.kind)
    fail(AH_ERROR_MISMATCH,
         "checkpoint '%s' was made with optimizer %s, the program has %s: "
         "compile with --optimizer=%s to go on from it",
         path, optimizerNames[manifest.optimizer], optimizerNames[*job.kind],
         optimizerNames[manifest.optimizer]);
  if (job.globalBatch && manifest.globalBatch != job.globalBatch)
    fail(AH_ERROR_MISMATCH,
         "checkpoint '%s' was made with a global batch of %u, the program has "
         "%u: the data's position would not be the same",
         path, manifest.globalBatch, job.globalBatch);
}

FoundCheckpoint chooseCheckpoint(const std::string &folder, int64_t step,
                                 std::vector<std::string> &skipped) {
  std::string names;
  for (const FoundCheckpoint &one : findCheckpoints(folder)) {
    if (step >= 0 && one.step != uint64_t(step)) {
      if (one.complete)
        names += (names.empty() ? "; there are steps " : ", ") +
                 std::to_string(one.step);
      continue;
    }
    if (one.complete)
      return one;
    skipped.push_back(one.folder);
  }
  for (const std::string &name : skipped)
    names += (&name == &skipped.front() ? "; incomplete: " : ", ") + name;
  std::string which = step >= 0 ? " of step " + std::to_string(step) : "";
  fail(AH_ERROR_NOT_FOUND, "there is no complete checkpoint%s in '%s'%s",
       which.c_str(), folder.c_str(), names.c_str());
}

void removeCheckpoint(const std::string &folder) {
  CheckpointManifest manifest =
      CheckpointManifest::read(folder + "/manifest.json");
  // Without its manifest it is none any more, whatever happens next.
  if (unlink((folder + "/manifest.json").c_str()) != 0)
    fail(AH_ERROR_SYSTEM, "cannot remove checkpoint '%s': %s", folder.c_str(),
         strerror(errno));
  for (const CheckpointFile &file : manifest.files)
    unlink((folder + "/" + file.name).c_str());
  rmdir(folder.c_str());
}

} // namespace autohet::runtime
