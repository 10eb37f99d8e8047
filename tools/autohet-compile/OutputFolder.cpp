//===- OutputFolder.cpp - where a compiled job goes -------------------------===//

#include "OutputFolder.h"

#include "autohet/Support/Tree.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <csignal>
#include <unistd.h>

using namespace llvm;
using namespace autohet;

static constexpr StringLiteral kManifest = "manifest.json";
/// Folders of ours, each followed by the number of the process that writes
/// there: files are made in the first, and it has the second name while they
/// take their places.
static constexpr StringLiteral kWorkPrefix = ".autohet-compile-";
static constexpr StringLiteral kCommitPrefix = ".autohet-commit-";

static Error fail(const Twine &what, std::error_code code) {
  return createStringError(code, what + ": " + code.message());
}

/// The names of the files in `folder`, sorted; folders are left out.
static SmallVector<std::string> filesIn(StringRef folder) {
  SmallVector<std::string> names;
  std::error_code code;
  for (sys::fs::directory_iterator it(folder, code, /*follow_symlinks=*/false),
       end;
       it != end && !code; it.increment(code))
    if (it->type() == sys::fs::file_type::regular_file)
      names.push_back(sys::path::filename(it->path()).str());
  llvm::sort(names);
  return names;
}

/// Removes a folder of ours: the files in it, no folder in it.
static void removeFlat(StringRef folder) {
  for (const std::string &name : filesIn(folder))
    sys::fs::remove(folder + "/" + name);
  sys::fs::remove(folder);
}

/// Removes what processes that were killed have left. Returns whether one of
/// them was taking files to their places: what lies there is ours.
static bool sweep(StringRef folder) {
  SmallVector<std::string> stale;
  bool wasCommitting = false;
  std::error_code code;
  for (sys::fs::directory_iterator it(folder, code, /*follow_symlinks=*/false),
       end;
       it != end && !code; it.increment(code)) {
    StringRef number = sys::path::filename(it->path());
    bool commits = number.consume_front(kCommitPrefix);
    unsigned process;
    if (it->type() == sys::fs::file_type::directory_file &&
        (commits || number.consume_front(kWorkPrefix)) &&
        !number.getAsInteger(10, process) && ::kill(pid_t(process), 0) != 0 &&
        errno == ESRCH) {
      stale.push_back(it->path());
      wasCommitting |= commits;
    }
  }
  for (const std::string &path : stale)
    removeFlat(path);
  return wasCommitting;
}

/// The executables that the compilation whose manifest lies in `folder` has
/// written; nothing where none does.
static std::optional<StringSet<>> formerExecutables(StringRef folder) {
  auto text = MemoryBuffer::getFile(folder + "/" + kManifest);
  if (!text || autohet::findDeepJson((*text)->getBuffer()))
    return std::nullopt;
  Expected<json::Value> value = json::parse((*text)->getBuffer());
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Object *manifest = value->getAsObject();
  if (!manifest || !manifest->getString("program_hash"))
    return std::nullopt;
  StringSet<> names;
  if (const json::Array *nodes = manifest->getArray("nodes"))
    for (const json::Value &node : *nodes)
      if (const json::Object *object = node.getAsObject())
        if (std::optional<StringRef> name = object->getString("executable")) {
          StringRef number = *name;
          if (number.consume_front("node") && !number.empty() &&
              all_of(number, isDigit))
            names.insert(*name);
        }
  return names;
}

Error autohet::checkFolder(StringRef path) {
  // A link to nowhere exists, too.
  auto exists = [](StringRef place) {
    sys::fs::file_status status;
    return !sys::fs::status(place, status, /*follow=*/false);
  };
  SmallString<256> place(path);
  sys::fs::make_absolute(place);
  while (!exists(place))
    sys::path::remove_filename(place);
  if (!sys::fs::is_directory(place))
    return createStringError("'" + place + "' is no folder");
  if (::access(place.c_str(), W_OK | X_OK) != 0)
    return fail("cannot write into '" + place + "'",
                std::error_code(errno, std::generic_category()));
  return Error::success();
}

OutputFolder::~OutputFolder() {
  if (work.empty())
    return;
  removeFlat(work);
  if (isNew)
    sys::fs::remove(folder); // fails where it is not empty, as it should
}

Error OutputFolder::open(StringRef path) {
  folder = path;
  isNew = !sys::fs::exists(folder);
  if (std::error_code code = sys::fs::create_directories(
          folder, /*IgnoreExisting=*/true, sys::fs::all_all))
    return fail("cannot create '" + folder + "'", code);
  if (!sys::fs::is_directory(folder))
    return createStringError("'" + folder + "' is no folder");
  wasInterrupted = sweep(folder);
  SmallString<256> mine(folder);
  sys::path::append(mine, kWorkPrefix + Twine(sys::Process::getProcessId()));
  if (std::error_code code = sys::fs::create_directory(
          mine, /*IgnoreExisting=*/false, sys::fs::all_all))
    return fail("cannot write into '" + folder + "'", code);
  work = mine;
  return Error::success();
}

std::string OutputFolder::pathOf(const Twine &name) const {
  return (work + "/" + name).str();
}

Error OutputFolder::commit() {
  SmallVector<std::string> names = filesIn(work);
  std::optional<StringSet<>> former = formerExecutables(folder);
  if (!former && wasInterrupted)
    former.emplace();
  auto placeOf = [&](StringRef name) { return (folder + "/" + name).str(); };
  for (const std::string &name : names) {
    std::string place = placeOf(name);
    bool isFile = sys::fs::is_regular_file(place);
    if (sys::fs::exists(place) && (!isFile || !former))
      return createStringError(
          "'" + place + "' is there already and the folder is not the result " +
          "of a compilation (it has no manifest.json of one); choose another " +
          "--output folder");
  }
  SmallString<256> taking(folder);
  sys::path::append(taking,
                    kCommitPrefix + Twine(sys::Process::getProcessId()));
  if (std::error_code code = sys::fs::rename(work, taking))
    return fail("cannot write into '" + folder + "'", code);
  work = taking;
  // Last the manifest; a mixture is noticed when it starts, by the hash of all
  // programs that each executable has.
  llvm::erase(names, kManifest);
  names.push_back(kManifest.str());
  for (const std::string &name : names) {
    if (std::error_code code = sys::fs::rename(pathOf(name), placeOf(name)))
      return fail("cannot write '" + placeOf(name) + "'", code);
    if (former)
      former->erase(name);
  }
  // Nodes that the job no longer has.
  if (former)
    for (const auto &entry : *former)
      sys::fs::remove(placeOf(entry.getKey()));
  isNew = false;
  return Error::success();
}
