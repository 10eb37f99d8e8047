//===- Report.cpp - what all cases together say ---------------------------===//

#include "Report.h"

#include "core/Error.h"

#include <algorithm>
#include <map>
#include <set>

using namespace autohet::conformance;
using autohet::runtime::format;

const char *autohet::conformance::nameOf(Outcome outcome) {
  static const char *const names[] = {"pass", "compiled", "refused", "WRONG",
                                      "CRASH"};
  return names[unsigned(outcome)];
}

namespace {

struct Count {
  unsigned all = 0, by[5] = {};
  void add(Outcome outcome) {
    ++all;
    ++by[unsigned(outcome)];
  }
  unsigned of(Outcome outcome) const { return by[unsigned(outcome)]; }
  unsigned good() const { return of(Outcome::Pass) + of(Outcome::Compiled); }
};

std::string join(const std::set<std::string> &names, size_t most) {
  std::string text;
  size_t count = 0;
  for (const std::string &name : names) {
    if (count++ == most)
      return text + format(" and %zu more", names.size() - most);
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

/// Cells of a Markdown table hold no bar.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

} // namespace

std::string autohet::conformance::lineOf(const CaseResult &result) {
  std::string line = format("%-8s %s/%s", nameOf(result.outcome),
                            result.folder.c_str(), result.name.c_str());
  if (!result.detail.empty())
    line += ": " + result.detail;
  else if (!result.bound.empty()) {
    line += " (bound:";
    for (const std::string &name : result.bound)
      line += " " + name;
    line += ")";
  }
  return line;
}

std::string
autohet::conformance::summarize(const std::vector<CaseResult> &results) {
  std::map<std::string, Count> folders;
  Count all;
  double seconds = 0;
  for (const CaseResult &result : results) {
    folders[result.folder].add(result.outcome);
    all.add(result.outcome);
    seconds += result.seconds;
  }
  std::string text;
  auto row = [&](const std::string &name, const Count &count) {
    text += format("%-28s %5u cases, %5u good (%.1f %%), %u refused, %u wrong, "
                   "%u crashed\n",
                   name.c_str(), count.all, count.good(),
                   count.all ? 100.0 * count.good() / count.all : 0,
                   count.of(Outcome::Refused), count.of(Outcome::Wrong),
                   count.of(Outcome::Crash));
  };
  for (auto &[name, count] : folders)
    row(name, count);
  if (folders.size() > 1)
    row("all", all);
  return text + format("%.2f s a case\n",
                       results.empty() ? 0 : seconds / results.size());
}

std::string
autohet::conformance::formatMarkdown(const std::vector<CaseResult> &results,
                                     const Settings &settings) {
  std::string text =
      "# ONNX: what is supported\n\n"
      "Written by `scripts/conformance` (`autohet-conformance --markdown`); "
      "not "
      "edited by hand.\n\n"
      "A case is a model with inputs and expected outputs. It *passes* when "
      "the executables that\n`autohet-compile --mode=inference` makes give "
      "these outputs";
  text += format(" within rtol %g and atol %g (ONNX's own tolerance;\n"
                 "integers and booleans exactly). ",
                 settings.rtol, settings.atol);
  text += "A file without outputs is *compiled* only. *Refused* is a message "
          "that says what is not\nsupported; a wrong number or a crash is a "
          "mistake of ours.\n\n"
          "| folder | cases | pass | compiled | refused | wrong | crashed |\n"
          "|---|---|---|---|---|---|---|\n";
  std::map<std::string, Count> folders;
  std::map<std::string, Count> ops;
  std::map<std::string, std::set<std::string>> reasons, bound;
  for (const CaseResult &result : results) {
    folders[result.folder].add(result.outcome);
    bool isSingle = result.ops.size() == 1;
    ops[isSingle ? result.ops[0] : "(several nodes)"].add(result.outcome);
    if (result.outcome > Outcome::Compiled)
      reasons[std::string(result.outcome == Outcome::Refused
                              ? ""
                              : nameOf(result.outcome)) +
              (result.outcome == Outcome::Refused ? "" : ": ") + result.detail]
          .insert(result.name);
    if (result.outcome <= Outcome::Compiled)
      for (const std::string &name : result.bound)
        bound[isSingle ? result.ops[0] : "(several nodes)"].insert(name);
  }
  for (auto &[name, count] : folders)
    text += format("| %s | %u | %u | %u | %u | %u | %u |\n", name.c_str(),
                   count.all, count.of(Outcome::Pass),
                   count.of(Outcome::Compiled), count.of(Outcome::Refused),
                   count.of(Outcome::Wrong), count.of(Outcome::Crash));
  text += "\n## By op\n\nCases whose graph is one node of that type. *Bound* "
          "inputs decide a shape: their values are given when compiling\n"
          "(`--bind NAME=FILE`).\n\n"
          "| op | cases | good | refused | bound |\n|---|---|---|---|---|\n";
  for (auto &[name, count] : ops)
    text += format("| %s | %u | %u | %u | %s |\n", name.c_str(), count.all,
                   count.good(), count.of(Outcome::Refused),
                   join(bound[name], 6).c_str());
  text += "\n## What is not supported\n\n| reason | cases |\n|---|---|\n";
  for (auto &[reason, names] : reasons)
    text += "| " + cell(reason) + " | " + cell(join(names, 4)) + " |\n";
  return text;
}
