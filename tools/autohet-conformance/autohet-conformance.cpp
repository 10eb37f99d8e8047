//===- autohet-conformance.cpp - options ----------------------------------===//

#include "Report.h"

#include "core/Error.h"
#include "data/Mapped.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace autohet::conformance;
using autohet::runtime::fail;

static const char help[] =
    R"(Usage: autohet-conformance [options] FOLDER|MODEL.onnx ...

Runs cases of ONNX's backend tests (model.onnx, test_data_set_N/input_*.pb and
output_*.pb) through autohet-compile --mode=inference and compares the outputs.
A FOLDER is a case, or holds cases and models; a MODEL is compiled only.

  -j N               cases at a time (default: the CPUs)
  --filter TEXT      only cases with TEXT in their name
  --markdown FILE    write the table of what is supported
  --rtol X, --atol X tolerance (default 1e-3 and 1e-7, as ONNX's own runner)
  --timeout SECONDS  of each program (default 60)
  --extent N         symbolic dims of a bare MODEL (default 2)
  --compiler FILE    default: autohet-compile beside this tool
  --option TEXT      pass TEXT to the compiler; may be repeated
  --work FOLDER      keep what was built there (default: a temporary folder)
  --quiet            print only what is not good, and the summary

Exit status: 0 without a wrong number and a crash, else 1. Refused cases count
as neither.
)";

static std::string folderOfTool() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? fs::path(std::string(path, length)).parent_path().string()
                    : ".";
}

/// The cases and models that `path` is or holds, in the order of their names.
static void findCases(const std::string &path,
                      std::vector<std::string> &cases) {
  if (!fs::exists(path))
    fail(AH_ERROR_NOT_FOUND, "'%s': there is no such file or folder",
         path.c_str());
  if (!fs::is_directory(path) || fs::exists(path + "/model.onnx")) {
    cases.push_back(path);
    return;
  }
  std::vector<std::string> found;
  for (const auto &entry : fs::directory_iterator(path)) {
    std::string inner = entry.path().string();
    if (entry.is_directory() ? fs::exists(inner + "/model.onnx")
                             : entry.path().extension() == ".onnx")
      found.push_back(inner);
  }
  std::sort(found.begin(), found.end());
  if (found.empty())
    fail(AH_ERROR_NOT_FOUND,
         "'%s' holds no case: wanted folders with a model.onnx, or .onnx files",
         path.c_str());
  cases.insert(cases.end(), found.begin(), found.end());
}

namespace {
struct CommandLine {
  Settings settings;
  std::vector<std::string> cases;
  std::string filter, markdown;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  bool quiet = false;

  /// False where there is nothing to do.
  bool parse(int argc, char **argv) {
    settings.compiler = folderOfTool() + "/autohet-compile";
    settings.compileOptions = {"-j", "1"};
    std::vector<std::string> paths;
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i], value;
      if (name == "-h" || name == "--help") {
        fputs(help, stdout);
        return false;
      }
      if (name == "--quiet") {
        quiet = true;
        continue;
      }
      if (name[0] != '-') {
        paths.push_back(name);
        continue;
      }
      if (size_t equals = name.find('='); equals != std::string::npos) {
        value = name.substr(equals + 1);
        name = name.substr(0, equals);
      } else if (++i < argc) {
        value = argv[i];
      } else {
        fail(AH_ERROR_INPUT, "option %s needs a value; see --help",
             name.c_str());
      }
      set(name, value);
    }
    if (paths.empty())
      fail(AH_ERROR_INPUT, "which cases? Give folders; see --help");
    for (const std::string &path : paths)
      findCases(fs::path(path).lexically_normal().string(), cases);
    if (!filter.empty())
      cases.erase(std::remove_if(cases.begin(), cases.end(),
                                 [&](const std::string &path) {
                                   return path.find(filter) ==
                                          std::string::npos;
                                 }),
                  cases.end());
    return true;
  }

  void set(const std::string &name, const std::string &value) {
    auto number = [&] {
      char *end = nullptr;
      double result = strtod(value.c_str(), &end);
      if (end == value.c_str() || *end || !(result >= 0))
        fail(AH_ERROR_INPUT, "option %s: found '%s', wanted a number",
             name.c_str(), value.c_str());
      return result;
    };
    if (name == "-j")
      threads = std::max(1u, unsigned(number()));
    else if (name == "--filter")
      filter = value;
    else if (name == "--markdown")
      markdown = value;
    else if (name == "--rtol")
      settings.rtol = number();
    else if (name == "--atol")
      settings.atol = number();
    else if (name == "--extent")
      settings.extent = unsigned(number());
    else if (name == "--timeout")
      settings.timeout_s = number();
    else if (name == "--compiler")
      settings.compiler = value;
    else if (name == "--option")
      settings.compileOptions.push_back(value);
    else if (name == "--work")
      settings.work = value, settings.keep = true;
    else
      fail(AH_ERROR_INPUT, "unknown option %s; see --help", name.c_str());
  }
};
} // namespace

static std::vector<CaseResult> runAll(const CommandLine &line) {
  std::vector<CaseResult> results(line.cases.size());
  std::atomic<size_t> next = 0;
  std::mutex printing;
  auto work = [&] {
    for (size_t i = next++; i < results.size(); i = next++) {
      results[i] = runCase(line.cases[i], line.settings);
      if (line.quiet && results[i].outcome <= Outcome::Compiled)
        continue;
      std::lock_guard<std::mutex> lock(printing);
      printf("%s\n", lineOf(results[i]).c_str());
      fflush(stdout);
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::min<size_t>(line.threads, results.size()); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
  return results;
}

static int run(int argc, char **argv) {
  CommandLine line;
  if (!line.parse(argc, argv))
    return 0;
  std::string temporary =
      (fs::temp_directory_path() / "autohet-conformance-XXXXXX").string();
  if (line.settings.work.empty()) {
    if (!mkdtemp(temporary.data()))
      fail(AH_ERROR_SYSTEM, "cannot make '%s': %s", temporary.c_str(),
           strerror(errno));
    line.settings.work = temporary;
  }
  std::vector<CaseResult> results = runAll(line);
  if (!line.settings.keep)
    fs::remove_all(temporary);
  printf("%s", summarize(results).c_str());
  if (!line.markdown.empty()) {
    std::string text = formatMarkdown(results, line.settings);
    autohet::runtime::AtomicFile file(line.markdown);
    file.write(text.data(), text.size());
    file.commit();
  }
  return std::any_of(results.begin(), results.end(),
                     [](const CaseResult &result) {
                       return result.outcome > Outcome::Refused;
                     });
}

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    fprintf(stderr, "autohet-conformance: error: %s\n", error.what());
    return 1;
  }
}
