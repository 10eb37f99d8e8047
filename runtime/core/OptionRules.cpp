//===- OptionRules.cpp - options that say nothing alone, or contradict ------===//
//
// An option without effect is a setting that its user believes in. What does
// not need the program is said here, before anything starts; the table of
// docs/cli/autohet-run.md has all of it.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "core/Options.h"

namespace autohet::runtime {

namespace {
/// `option` has an effect only beside one of the others.
struct Need {
  const char *option;
  std::vector<const char *> others;
};
struct Contradiction {
  const char *option, *other, *why;
};
} // namespace

static const std::vector<Need> &needs() {
  static const std::vector<Need> table = {
      {"data-dtype", {"data", "eval-data"}},
      {"data-order", {"data"}},
      {"mask-token", {"data", "eval-data"}},
      {"mask-probability", {"data", "eval-data"}},
      {"total-steps", {"schedule", "resume"}},
      {"eval-data", {"eval-every"}},
      {"eval-every", {"eval-data"}},
      {"eval-batches", {"eval-data"}},
      {"checkpoint-every", {"checkpoint"}},
      {"checkpoint-keep", {"checkpoint"}},
      {"resume", {"checkpoint"}}};
  return table;
}

static const Contradiction contradictions[] = {
    {"alone", "emulate", "nobody is there to hold it back"},
    {"alone", "master-addr", "it meets nobody"},
    {"alone", "master-port", "it meets nobody"},
    {"alone", "stall-timeout", "nobody watches it"},
    {"alone", "death-timeout", "nobody watches it"},
    {"alone", "check-messages", "it has no messages"},
    {"describe", "version", "each is printed instead of running"},
    {"describe", "preflight", "each is done instead of running"},
    {"preflight", "version", "each is done instead of running"}};

static void checkValues(const NodeOptions &o) {
  bool isDrawn = o.data == "random";
  if (isDrawn && o.isGiven("data-order"))
    fail(AH_ERROR_INPUT,
         "options --data=random and --data-order: drawn tokens have no order");
  if (isDrawn && o.isGiven("data-dtype") && o.evalData.empty())
    fail(AH_ERROR_INPUT,
         "options --data=random and --data-dtype: there is no file");
  if (!o.labels.empty() && !o.data.empty() && o.shuffled)
    fail(AH_ERROR_INPUT,
         "options --data and --labels: the labels lie in the order of the "
         "samples, the data is shuffled; give --data-order=sequential");
  if (o.isGiven("total-steps") && o.schedule == AH_CONSTANT)
    fail(AH_ERROR_INPUT,
         "options --schedule=constant and --total-steps: it never ends");
  if (o.steps == 0 && o.saveWeights.empty())
    fail(AH_ERROR_INPUT, "option --steps: found '0', wanted 1 or more; 0 is "
                         "for --save-weights without training");
}

void checkTogether(const NodeOptions &options) {
  for (const Need &need : needs()) {
    bool hasOne = !options.isGiven(need.option);
    std::string names;
    for (const char *other : need.others) {
      hasOne |= options.isGiven(other);
      names += (names.empty() ? "--" : " or --") + std::string(other);
    }
    if (!hasOne)
      fail(AH_ERROR_INPUT, "option --%s needs %s", need.option, names.c_str());
  }
  for (auto [option, other, why] : contradictions)
    if (options.isGiven(option) && options.isGiven(other))
      fail(AH_ERROR_INPUT, "options --%s and --%s contradict each other: %s",
           option, other, why);
  checkValues(options);
}

} // namespace autohet::runtime
