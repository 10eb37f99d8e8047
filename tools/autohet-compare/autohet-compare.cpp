//===- autohet-compare.cpp - how far are two files apart?
//------------------===//
//
// What a person reaches for who has a reference of their own: outputs,
// gradients, weights or losses of a run against theirs.
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include "autohet/runtime/streams.h"
#include "core/Error.h"
#include "core/StandardOutput.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace autohet;

static const char *const help =
    R"(usage: autohet-compare LEFT RIGHT [options]

Compares tensors of the same name in two .safetensors files, or the numbers of
two .jsonl logs (loss and gradient_norm, unless --only says otherwise), and
prints where they differ most. Without a tolerance it only prints.

  --absolute X              |left - right| at most X
  --relative X              at most X of the right element, elementwise
  --relative-to-max X       at most X of the right tensor's largest element
  --relative-to-all-max X   at most X of the largest element of all right tensors
                            (given several, each has to hold)
  --absolute-for REGEX=X    tensors that match are held to |left - right| <= X
                            alone (gradients that are zero but for rounding)
  --only REGEX              compare names that match
  --ignore REGEX            leave out names that match
  --rename REGEX=TEXT       in the left file's names, before they are matched
  --allow-missing           a name on one side alone is no failure
  --rows N                  tensors to print, worst first (default 20)

Exit status: 0 within the tolerances (or none given), 1 otherwise, 1 on an error.
)";

namespace {

[[noreturn]] void usageError(const std::string &text) {
  std::fprintf(stderr, "autohet-compare: error: %s (see --help)\n",
               text.c_str());
  std::exit(1);
}

double number(const char *option, const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= 0))
    usageError(std::string(option) + ": found '" + text +
               "', wanted a number >= 0");
  return value;
}

size_t wholeNumber(const char *option, const std::string &text) {
  size_t value = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last)
    usageError(std::string(option) + ": found '" + text +
               "', wanted a whole number");
  return value;
}

std::regex pattern(const char *option, const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &error) {
    usageError(std::string(option) + ": '" + text +
               "' is no regular expression: " + error.what());
  }
}

/// Splits at the last '=': a name may hold one, a number may not.
std::pair<std::string, std::string> split(const char *option,
                                          const std::string &text) {
  size_t at = text.rfind('=');
  if (at == std::string::npos)
    usageError(std::string(option) + ": found '" + text +
               "', wanted REGEX=VALUE");
  return {text.substr(0, at), text.substr(at + 1)};
}

compare::Options parse(int argc, char **argv) {
  compare::Options options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    if (argument.rfind("--", 0) != 0) {
      files.push_back(argument);
      continue;
    }
    if (argument == "--help") {
      std::fputs(help, stdout);
      runtime::checkStandardOutput();
      std::exit(0);
    }
    if (argument == "--allow-missing") {
      options.allowMissing = true;
      continue;
    }
    // `--option value` and `--option=value` are the same.
    size_t equals = argument.find('=');
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
      argument.resize(equals);
    }
    const char *name = argument.c_str();
    auto is = [&](const char *option) { return !std::strcmp(name, option); };
    bool known = is("--absolute") || is("--relative") ||
                 is("--relative-to-max") || is("--relative-to-all-max") ||
                 is("--absolute-for") || is("--only") || is("--ignore") ||
                 is("--rename") || is("--rows");
    if (!known)
      usageError("unknown option '" + argument + "'");
    if (equals == std::string::npos) {
      if (i + 1 == argc)
        usageError(argument + " needs a value");
      value = argv[++i];
    }
    if (is("--absolute"))
      options.absolute = number(name, value);
    else if (is("--relative"))
      options.relative = number(name, value);
    else if (is("--relative-to-max"))
      options.relativeToMax = number(name, value);
    else if (is("--relative-to-all-max"))
      options.relativeToAll = number(name, value);
    else if (is("--only"))
      options.only = pattern(name, value);
    else if (is("--ignore"))
      options.ignore = pattern(name, value);
    else if (is("--rows"))
      options.rows = wholeNumber(name, value);
    else if (auto [from, to] = split(name, value); is("--rename"))
      options.renames.emplace_back(pattern(name, from), to);
    else
      options.absoluteFor.emplace_back(pattern(name, from), number(name, to));
  }
  if (files.size() != 2)
    usageError("found " + std::to_string(files.size()) + " files, wanted two");
  options.left = files[0];
  options.right = files[1];
  // A log also has times, which no two runs share.
  if (!options.only && options.right.size() > 6 &&
      !options.right.compare(options.right.size() - 6, 6, ".jsonl"))
    options.only = std::regex("^(loss|gradient_norm)$");
  return options;
}

/// A pattern that no name matches is a typing error, not a rule without use:
/// what it should have held to a bound would be held to none.
void checkUses(const std::vector<compare::Series> &left,
               const std::vector<compare::Series> &right,
               const compare::Options &options) {
  auto isMatched = [](const std::vector<compare::Series> &all,
                      const std::regex &pattern) {
    for (const compare::Series &one : all)
      if (std::regex_search(one.name, pattern))
        return true;
    return false;
  };
  for (const auto &[pattern, text] : options.renames)
    if (!isMatched(left, pattern))
      usageError("--rename: no name of " + options.left + " matches; '" + text +
                 "' would stand nowhere");
  for (const auto &[pattern, bound] : options.absoluteFor)
    if (!isMatched(left, pattern) && !isMatched(right, pattern))
      usageError("--absolute-for: no name matches its pattern (bound " +
                 std::to_string(bound) + ")");
}

} // namespace

int main(int argc, char **argv) {
  ah_hold_standard_streams();
  ah_ignore_size_signal();
  try {
    compare::Options options = parse(argc, argv);
    std::vector<compare::Series> left = compare::readSeries(options.left);
    std::vector<compare::Series> right = compare::readSeries(options.right);
    checkUses(left, right, options);
    compare::Result result = compare::compare(left, right, options);
    compare::print(result, options);
    // Two files without a common name are never "equal within".
    if (result.rows.empty())
      runtime::fail(AH_ERROR_INPUT,
                    "no tensor was compared: %zu names in %s, %zu in %s",
                    left.size(), options.left.c_str(), right.size(),
                    options.right.c_str());
    runtime::checkStandardOutput();
    return result.failed(options) ? 1 : 0;
  } catch (const runtime::Error &error) {
    std::fprintf(stderr, "autohet-compare: error: %s\n", error.what());
    return 1;
  }
}
