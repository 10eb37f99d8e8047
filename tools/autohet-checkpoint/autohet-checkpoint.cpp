//===- autohet-checkpoint.cpp - lists, verifies, exports checkpoints --------===//

#include "autohet/runtime/streams.h"
#include "checkpoint/Checkpoint.h"
#include "core/Error.h"
#include "core/Gather.h"
#include "core/StandardOutput.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace autohet::runtime;

static const char help[] =
    "Usage: autohet-checkpoint list FOLDER\n"
    "       autohet-checkpoint verify FOLDER [--step N]\n"
    "       autohet-checkpoint export FOLDER FILE.safetensors [--step N]\n"
    "\n"
    "FOLDER is what was given as --checkpoint, or one step's folder in it.\n"
    "\n"
    "  list      one line a checkpoint: step, optimizer, size, and what is "
    "incomplete\n"
    "  verify    checks all complete checkpoints, or that of step N: every "
    "tensor is\n"
    "            whole, every checksum right; exits 1 and names the tensor and "
    "the file\n"
    "            where one is not\n"
    "  export    writes the parameters of the newest complete checkpoint, or "
    "of step N,\n"
    "            whole and under PyTorch's names, as one safetensors file\n";

// A step's own folder, or all in a folder of them, newest first.
static std::vector<FoundCheckpoint> find(const std::string &folder,
                                         int64_t step) {
  if (access((folder + "/manifest.json").c_str(), F_OK) == 0) {
    CheckpointManifest manifest = CheckpointManifest::ofFolder(folder);
    if (step >= 0 && manifest.step != uint64_t(step))
      fail(AH_ERROR_INPUT, "option --step: '%s' is of step %llu, wanted %lld",
           folder.c_str(), (unsigned long long)manifest.step, (long long)step);
    return {{folder, manifest.step, true}};
  }
  std::vector<FoundCheckpoint> found;
  for (FoundCheckpoint &one : findCheckpoints(folder))
    if (step < 0 || one.step == uint64_t(step))
      found.push_back(std::move(one));
  return found;
}

/// Says what there is instead.
static void failWithout(const std::string &folder, int64_t step) {
  std::vector<std::string> skipped;
  chooseCheckpoint(folder, step, skipped);
}

/// What `verify` would refuse without reading a tensor.
static std::string fileProblem(const std::string &folder,
                               const CheckpointFile &file) {
  struct stat status;
  if (stat((folder + "/" + file.name).c_str(), &status) != 0)
    return "; '" + file.name + "' is missing";
  if (uint64_t(status.st_size) != file.bytes)
    return "; '" + file.name + "' has " + std::to_string(status.st_size) +
           " bytes, wanted " + std::to_string(file.bytes);
  return "";
}

/// Prints an error and goes on: what is wrong with one checkpoint says nothing
/// about the next.
static void sayError(const char *text) {
  fflush(stdout);
  fprintf(stderr, "autohet-checkpoint: error: %s\n", text);
}

static void listOne(const FoundCheckpoint &one) {
  if (!one.complete) {
    printf("step %-10llu %s: incomplete (no manifest)\n",
           (unsigned long long)one.step, one.folder.c_str());
    return;
  }
  CheckpointManifest manifest = CheckpointManifest::ofFolder(one.folder);
  uint64_t bytes = 0;
  std::string problems;
  for (const CheckpointFile &file : manifest.files) {
    bytes += file.bytes;
    problems += fileProblem(one.folder, file);
  }
  printf("step %-10llu %s: %s, %zu slices in %zu files, %.1f MiB%s\n",
         (unsigned long long)manifest.step, one.folder.c_str(),
         optimizerNames[manifest.optimizer], manifest.slices.size(),
         manifest.files.size(), double(bytes) / (1 << 20), problems.c_str());
}

/// Whether every manifest could be read.
static bool list(const std::string &folder, int64_t step) {
  bool isGood = true;
  std::vector<FoundCheckpoint> all = find(folder, step);
  if (all.empty())
    failWithout(folder, step);
  for (const FoundCheckpoint &one : all)
    try {
      listOne(one);
    } catch (const Error &error) {
      printf("step %-10llu %s: damaged\n", (unsigned long long)one.step,
             one.folder.c_str());
      sayError(error.what());
      isGood = false;
    }
  return isGood;
}

/// Whether all are whole; throws where there is none.
static bool verify(const std::string &folder, int64_t step) {
  unsigned good = 0, damaged = 0;
  for (const FoundCheckpoint &one : find(folder, step)) {
    if (!one.complete) {
      printf("%s: incomplete, skipped\n", one.folder.c_str());
      continue;
    }
    try {
      CheckpointReader reader(one.folder);
      reader.verify();
      printf("%s: good, %zu slices\n", one.folder.c_str(),
             reader.manifest().slices.size());
      ++good;
    } catch (const Error &error) {
      printf("%s: damaged\n", one.folder.c_str());
      sayError(error.what());
      ++damaged;
    }
  }
  if (good + damaged == 0)
    failWithout(folder, step);
  return damaged == 0;
}

static void exportOne(const FoundCheckpoint &one, const std::string &path) {
  CheckpointReader reader(one.folder);
  std::vector<Piece> pieces;
  for (const SliceRecord &slice : reader.manifest().slices) {
    if (slice.kind != SliceKind::Parameter)
      continue;
    Piece piece{slice.name, slice.dtype, slice.box, {}};
    piece.bytes.resize(slice.box.elements() * dtypeBytes(slice.dtype));
    reader.read(slice.name, slice.kind, slice.dtype, slice.box,
                piece.bytes.data());
    pieces.push_back(std::move(piece));
  }
  writePieces(path, pieces, reader.manifest().aliases);
  printf("wrote step %llu to '%s'\n", (unsigned long long)one.step,
         path.c_str());
}

static void exportTo(const std::string &folder, int64_t step,
                     const std::string &path) {
  for (const FoundCheckpoint &one : find(folder, step)) {
    if (!one.complete) {
      printf("%s: incomplete, skipped\n", one.folder.c_str());
      continue;
    }
    try {
      return exportOne(one, path);
    } catch (const Error &error) {
      // Nobody gets older weights than he thinks.
      std::optional<FoundCheckpoint> other =
          step < 0 ? findOther(folder, one.step) : std::nullopt;
      if (!other)
        throw;
      fail(error.status, "%s; another one is '%s': --step %llu exports it",
           error.what(), other->folder.c_str(),
           (unsigned long long)other->step);
    }
  }
  failWithout(folder, step);
}

/// Whether all is well.
static bool run(int argc, char **argv) {
  std::vector<std::string> words;
  int64_t step = -1;
  for (int index = 1; index < argc; ++index) {
    std::string word = argv[index];
    if (word == "--help" || word == "-h") {
      fputs(help, stdout);
      return true;
    }
    if (word == "--step" || word.rfind("--step=", 0) == 0) {
      if (word == "--step" && ++index == argc)
        fail(AH_ERROR_INPUT, "option --step needs a value: N");
      std::string value = word == "--step" ? argv[index] : word.substr(7);
      char *end;
      step = strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end || step < 0)
        fail(AH_ERROR_INPUT,
             "option --step: found '%s', wanted a natural number",
             value.c_str());
      continue;
    }
    if (word.rfind("-", 0) == 0)
      fail(AH_ERROR_INPUT, "unknown option '%s'; see --help", word.c_str());
    words.push_back(word);
  }
  if (words.size() == 2 && words[0] == "list")
    return list(words[1], step);
  if (words.size() == 2 && words[0] == "verify")
    return verify(words[1], step);
  if (words.size() == 3 && words[0] == "export") {
    exportTo(words[1], step, words[2]);
    return true;
  }
  fail(AH_ERROR_INPUT,
       "wanted list FOLDER, verify FOLDER or export FOLDER FILE; see --help");
}

int main(int argc, char **argv) {
  ah_hold_standard_streams();
  ah_ignore_size_signal();
  bool isGood = false;
  ah_status status = guarded([&] {
    isGood = run(argc, argv);
    checkStandardOutput();
  });
  if (status == AH_OK)
    return isGood ? 0 : 1;
  fprintf(stderr, "autohet-checkpoint: error: %s\n", ah_last_error());
  return 1;
}
