//===- LinkNode.cpp - objects to a node's executable ----------------------===//
//
// The compiler driver runs lld: it knows where the C and C++ libraries are.
// Communication and matrix libraries are opened when an executable starts, so
// nothing but the C++ standard library, threads and dl is linked.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/LinkNode.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

using namespace llvm;
using namespace autohet::cpu;

namespace {

constexpr StringLiteral kRuntimeName = "libAutohetRuntime.a";

// Any address within this library's code will do.
void *addressInThisProgram() {
  return reinterpret_cast<void *>(&addressInThisProgram);
}

Expected<std::string> findDriver(const std::string &wanted) {
  SmallVector<std::string> names = {wanted};
  if (wanted.empty())
    names = {"clang++-22", "clang++"};
  for (const std::string &name : names)
    if (ErrorOr<std::string> path = sys::findProgramByName(name))
      return *path;
  return createStringError("cannot link: no program " + join(names, " or ") +
                           " is on the PATH");
}

Error writeFile(StringRef path, StringRef contents) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (!error) {
    stream << contents;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return createFileError(path, error);
  return Error::success();
}

/// Why the linker could not write its output; no error where its log says
/// nothing of that. It maps the output, so where the disk is full a signal ends
/// it, and what it prints is the report of a crash.
std::error_code findWriteError(StringRef log) {
  for (int code : {ENOSPC, EDQUOT, EFBIG})
    if (std::error_code error(code, std::generic_category());
        log.contains(error.message()))
      return error;
  // The driver names the signal.
  for (auto [signal, code] :
       {std::pair(SIGBUS, ENOSPC), std::pair(SIGXFSZ, EFBIG)})
    if (log.contains(strsignal(signal)))
      return std::error_code(code, std::generic_category());
  return {};
}

/// Anything else the linker would read to its end, or misread.
Error checkArchive(StringRef path) {
  file_magic magic;
  std::error_code code;
  sys::fs::file_status status;
  if (!(code = sys::fs::status(path, status)) &&
      status.type() == sys::fs::file_type::regular_file)
    code = identify_magic(path, magic);
  if (code)
    return createStringError("the runtime library '" + path +
                             "' cannot be read: " + code.message());
  if (magic != file_magic::archive)
    return createStringError("'" + path +
                             "' is no archive; wanted the runtime library, " +
                             kRuntimeName);
  return Error::success();
}

} // namespace

Expected<std::string> autohet::cpu::findRuntimeLibrary() {
  std::string program =
      sys::fs::getMainExecutable(nullptr, addressInThisProgram());
  StringRef folder = sys::path::parent_path(program);
  SmallVector<std::string> tried;
  // bin/ of an installation or build tree; test/unit/ of a build tree.
  for (StringRef relative : {"../lib", "../lib/autohet", "../../lib", "."}) {
    SmallString<256> path(folder);
    sys::path::append(path, relative, kRuntimeName);
    sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    if (sys::fs::exists(path))
      return path.str().str();
    tried.push_back(path.str().str());
  }
  return createStringError("the runtime library " + kRuntimeName +
                           " was not found; looked for " + join(tried, ", "));
}

Error autohet::cpu::linkNode(ArrayRef<StringRef> objects, StringRef output,
                             const LinkOptions &options) {
  Expected<std::string> driver = findDriver(options.driver);
  if (!driver)
    return driver.takeError();
  SmallVector<std::string> arguments = {*driver, "-fuse-ld=lld"};
  if (options.shared) {
    arguments.append({"-shared", "-nostdlib"});
  } else {
    std::string runtime = options.runtimeLibrary;
    if (runtime.empty()) {
      Expected<std::string> found = findRuntimeLibrary();
      if (!found)
        return found.takeError();
      runtime = *found;
    }
    if (Error error = checkArchive(runtime))
      return error;
    // `main` is in the runtime, which refers to this program's image: the whole
    // archive goes in, so that neither depends on the order of the other.
    arguments.append({"-pie", "-Wl,--whole-archive", runtime,
                      "-Wl,--no-whole-archive", "-pthread", "-ldl"});
  }

  // Everything temporary lies in one folder, removed whatever happens.
  SmallString<128> folder;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("autohet-link", folder))
    return createStringError(error, "cannot make a temporary folder");
  auto cleanup = llvm::scope_exit([&] { sys::fs::remove_directories(folder); });
  auto inFolder = [&](const Twine &name) {
    SmallString<128> path(folder);
    sys::path::append(path, name);
    return path.str().str();
  };
  for (auto [index, object] : enumerate(objects)) {
    std::string path = inFolder("kernel" + Twine(index) + ".o");
    if (Error error = writeFile(path, object))
      return error;
    arguments.push_back(path);
  }
  // Beside the output, so that the final rename is atomic.
  std::string partial = (output + ".partial").str();
  arguments.append({"-o", partial});

  SmallVector<StringRef> argv(arguments.begin(), arguments.end());
  std::string log = inFolder("log"), message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  int status = sys::ExecuteAndWait(*driver, argv, std::nullopt, redirects,
                                   /*SecondsToWait=*/120, 0, &message);
  if (status != 0) {
    sys::fs::remove(partial);
    if (auto text = MemoryBuffer::getFile(log)) {
      if (std::error_code error = findWriteError((*text)->getBuffer()))
        return createStringError(error, "cannot write '" + output +
                                            "': " + error.message());
      message += (*text)->getBuffer().str();
    }
    return createStringError("linking " + output + " failed (" + *driver +
                             ", status " + Twine(status) + "): " + message);
  }
  if (std::error_code error = sys::fs::rename(partial, output))
    return createFileError(output, error);
  return Error::success();
}
