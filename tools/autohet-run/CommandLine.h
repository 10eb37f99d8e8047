//===- CommandLine.h - what autohet-run was asked to do -------------------===//

#ifndef AUTOHET_TOOLS_RUN_COMMANDLINE_H
#define AUTOHET_TOOLS_RUN_COMMANDLINE_H

#include "supervisor/Manifest.h"

#include <string>
#include <vector>

namespace autohet::run {

/// Ends the tool with status 1 and "autohet-run: error: ..."; printf style.
[[noreturn]] void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

struct CommandLine {
  std::string folder; ///< absolute
  enum What { Run, Print, Preflight } what = Run;
  std::string launcher; ///< of Print: mpirun, srun, ssh
  bool emulate = false;
  uint16_t masterPort = 0;         ///< 0: a free one
  std::vector<std::string> passed; ///< what the executables get
  std::string checkpoints;         ///< --checkpoint of those
  bool resumes = false;            ///< --resume of those
};

/// Reads the job file too, and checks what is passed on, so that a mistake
/// starts nothing. Prints --help and --version itself.
CommandLine parseCommandLine(int argc, char **argv);

/// manifest.json of the folder.
runtime::Manifest readManifest(const std::string &folder);

/// `status`, or 1 with a message if something that was printed was lost.
int exitStatus(int status);

/// For a shell: quoted where needed.
std::string shellQuote(const std::string &text);

// The three things it does; each returns the exit status.
int runHere(const CommandLine &line, const runtime::Manifest &manifest);
int printLaunchLines(const CommandLine &line,
                     const runtime::Manifest &manifest);
int runPreflight(const CommandLine &line, const runtime::Manifest &manifest);

} // namespace autohet::run

#endif
