//===- Options.cpp - a node's command line ----------------------------------===//
//
// One table says of each option its name, value, help and effect; parsing,
// --help and the text that ranks compare come from it.
//
//===----------------------------------------------------------------------===//

#include "core/Options.h"

#include "core/Error.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace autohet::runtime {

namespace {
struct Option {
  const char *name;
  const char *value; // null: a flag
  const char *help;
  std::function<void(NodeOptions &, const std::string &)> set;
  bool changesNumbers = false;
  bool repeats = false;
};
struct Group {
  const char *title;
  std::vector<Option> options;
};
} // namespace

template <typename T>
static T number(const std::string &text, const char *wanted) {
  T value{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail(AH_ERROR_INPUT, "found '%s', wanted %s", text.c_str(), wanted);
  return value;
}

static int64_t natural(const std::string &text) {
  int64_t value = number<int64_t>(text, "a natural number");
  if (value < 0)
    fail(AH_ERROR_INPUT, "found '%s', wanted a natural number", text.c_str());
  return value;
}

static uint32_t natural(const std::string &text, uint32_t low, uint32_t high) {
  std::string wanted = format("a number from %u to %u", low, high);
  uint32_t value = number<uint32_t>(text, wanted.c_str());
  if (value < low || value > high)
    fail(AH_ERROR_INPUT, "found '%s', wanted %s", text.c_str(), wanted.c_str());
  return value;
}

uint32_t parsePort(const std::string &text) { return natural(text, 1, 65535); }

static double real(const std::string &text, double low, double high,
                   const char *wanted) {
  double value = number<double>(text, wanted);
  if (!(value >= low && value <= high))
    fail(AH_ERROR_INPUT, "found '%s', wanted %s", text.c_str(), wanted);
  return value;
}

static double notNegative(const std::string &text) {
  return real(text, 0, 1e300, "a number, 0 or more");
}

template <typename T>
static T oneOf(const std::string &text,
               std::initializer_list<std::pair<const char *, T>> choices) {
  std::string names;
  for (auto &[name, value] : choices) {
    if (text == name)
      return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  fail(AH_ERROR_INPUT, "found '%s', wanted one of %s", text.c_str(),
       names.c_str());
}

static void setBetas(NodeOptions &o, const std::string &text) {
  size_t separator = text.find_first_of(", ");
  if (separator == std::string::npos)
    fail(AH_ERROR_INPUT, "found '%s', wanted two numbers, B1,B2", text.c_str());
  const char *wanted = "two numbers from 0 to below 1, B1,B2";
  o.beta1 =
      real(text.substr(0, separator), 0, std::nextafter(1.0, 0.0), wanted);
  o.beta2 =
      real(text.substr(separator + 1), 0, std::nextafter(1.0, 0.0), wanted);
}

// A member that is the option's text; empty it would mean "not given".
static auto text(std::string NodeOptions::*member) {
  return [member](NodeOptions &o, const std::string &value) {
    if (value.empty())
      fail(AH_ERROR_INPUT, "found nothing, wanted a value");
    o.*member = value;
  };
}
static auto count(int64_t NodeOptions::*member) {
  return [member](NodeOptions &o, const std::string &value) {
    o.*member = natural(value);
  };
}

using O = NodeOptions;
using S = const std::string &;

static const std::vector<Group> &groups() {
  static const std::vector<Group> table = {
      {"What to run",
       {{"steps", "N",
         "optimizer steps, counted from the start of training (default 1; 0: "
         "none, for --save-weights)",
         [](O &o, S v) { o.steps = natural(v); }, true},
        {"seed", "N",
         "of dropout, data order and --init (default 0, or the checkpoint's)",
         [](O &o, S v) { o.seed = number<uint64_t>(v, "a natural number"); },
         true},
        {"init", "[=DEVIATION]",
         "draw anew what is trained, or came without values: matrices normal "
         "(default deviation 0.02), norms 1, biases 0; with --weights, "
         "what the file lacks",
         [](O &o, S v) {
           o.init = true;
           if (!v.empty())
             o.initDeviation = notNegative(v);
         },
         true},
        {"one-at-a-time", nullptr,
         "inference: a batch begins when all ranks have ended the one before",
         [](O &o, S) { o.oneAtATime = true; }, true},
        {"weights", "PATH",
         "start from this safetensors file (PyTorch's names and shapes), or a "
         "folder with "
         "model.safetensors or its index, instead of the model's own weights; "
         "F16 and BF16 "
         "are read as float32",
         text(&O::weights), true},
        {"weights-index", "FILE",
         "where weights are (default: weights.index beside the "
         "executable)",
         text(&O::weightsIndex)}}},
      {"What it reads",
       {{"data", "FILE",
         "tokens: raw .bin with --data-dtype, or Megatron's .idx and .bin; "
         "'random' draws "
         "them, for measurements",
         text(&O::data), true},
        {"data-dtype", "TYPE",
         "of a raw file: uint8, uint16, int32, int64, ...", text(&O::dataDtype),
         true},
        {"data-order", "ORDER",
         "shuffled (default) or sequential; a function of the seed and the "
         "sample's number",
         [](O &o, S v) {
           o.shuffled =
               oneOf<bool>(v, {{"shuffled", true}, {"sequential", false}});
         },
         true},
        {"inputs", "FILE|NAME=FILE",
         "may be repeated: safetensors with one tensor an input, or the one "
         "tensor of input NAME as .npy, .pb (ONNX) or .raw; the batch dim "
         "holds k global batches, step s uses number s mod k",
         [](O &o, S v) { o.inputs.push_back(v); }, true, true},
        {"labels", "FILE",
         "safetensors with the labels, aligned with the outputs: not "
         "shifted",
         text(&O::labels), true},
        {"mask-token", "ID", "what hidden tokens show (objective masked)",
         count(&O::maskToken), true},
        {"mask-probability", "P", "of hiding a token (default 0.15)",
         [](O &o, S v) { o.maskProbability = real(v, 0, 1, "a probability"); },
         true}}},
      {"Optimizer (its kind is compiled in; defaults are PyTorch's)",
       {{"lr", "X", "learning rate (default 1e-3)",
         [](O &o, S v) { o.learningRate = notNegative(v); }, true},
        {"betas", "B1,B2", "of Adam (default 0.9,0.999)", setBetas, true},
        {"eps", "X", "of Adam (default 1e-8)",
         [](O &o, S v) { o.epsilon = notNegative(v); }, true},
        {"weight-decay", "X", "default 0.01 for AdamW, else 0",
         [](O &o, S v) { o.weightDecay = notNegative(v); }, true},
        {"no-decay", "REGEX",
         "parameters without weight decay, such as "
         "'bias$|norm|ln_' (searched in the name)",
         [](O &o, S v) { o.noDecay = v; }, true},
        {"clip-norm", "X",
         "scale gradients so that their norm over everything is at most X",
         [](O &o, S v) { o.clipNorm = notNegative(v); }, true},
        {"schedule", "KIND",
         "constant (default), linear or cosine: down to 0 at "
         "--total-steps",
         [](O &o, S v) {
           o.schedule = oneOf<ah_schedule>(v, {{"constant", AH_CONSTANT},
                                               {"linear", AH_LINEAR},
                                               {"cosine", AH_COSINE}});
         },
         true},
        {"warmup-steps", "N", "steps over which the rate rises linearly from 0",
         [](O &o, S v) { o.warmupSteps = natural(v); }, true},
        {"total-steps", "N", "where the schedule ends (default --steps)",
         [](O &o, S v) { o.totalSteps = natural(v); }, true}}},
      {"What it writes",
       {{"save-loss", "FILE", "JSON lines: step, loss, gradient_norm, lr",
         text(&O::saveLoss)},
        {"save-outputs", "FILE",
         "safetensors: the model's outputs at the first step (inference: of "
         "all "
         "batches); with {step} in FILE, at every step, a file each; with "
         "{name}, an output each, as .npy, .pb, .raw or .safetensors",
         text(&O::saveOutputs)},
        {"save-gradients", "FILE",
         "safetensors: gradients of the first step, before clipping and "
         "update; with {step} in FILE, of every step, a file each",
         text(&O::saveGradients)},
        {"save-weights", "FILE", "safetensors: parameters after the last step",
         text(&O::saveWeights)},
        {"metrics", "FILE",
         "JSON lines: as --save-loss, with times, rates and evaluations; "
         "inference: batch_time_s of each batch, and the period_s of all",
         text(&O::metrics)},
        {"trace", "FILE",
         "what each device did, for ui.perfetto.dev; with several devices "
         "FILE gets .rankN before its ending",
         text(&O::trace)},
        {"log-every", "N", "print every N-th step (default 10; 0: none)",
         count(&O::logEvery)}}},
      {"Evaluation",
       {{"eval-data", "FILE", "tokens as --data (same dtype), read in order",
         text(&O::evalData), true},
        {"eval-every", "N", "evaluate every N steps", count(&O::evalEvery),
         true},
        {"eval-batches", "N", "global batches an evaluation (default 8)",
         count(&O::evalBatches), true}}},
      {"Checkpoints",
       {{"checkpoint", "FOLDER",
         "save here at the end, at SIGTERM to the supervisor, and as "
         "--checkpoint-every "
         "says; all nodes must see the folder",
         text(&O::checkpoints)},
        {"checkpoint-every", "N", "also save every N steps",
         count(&O::checkpointEvery)},
        {"checkpoint-keep", "N", "complete ones to keep (default 3; 0: all)",
         count(&O::checkpointKeep)},
        {"resume", "[=STEP]",
         "go on from the newest complete checkpoint, or that of STEP, whatever "
         "plan made "
         "it; optimizer options not given are the checkpoint's",
         [](O &o, S v) {
           o.resume = true;
           if (!v.empty())
             o.resumeStep = natural(v);
         },
         true}}},
      {"When things go wrong",
       {{"on-nonfinite", "WHAT",
         "at a NaN or infinite loss or gradient: stop (default; names the "
         "first command "
         "that made it) or skip the step's update",
         [](O &o, S v) {
           o.onNonfinite = oneOf<OnNonfinite>(
               v, {{"stop", OnNonfinite::Stop}, {"skip", OnNonfinite::Skip}});
         },
         true},
        {"stall-timeout", "SECONDS",
         "end when a peer's commands stand still (default 600)",
         [](O &o, S v) { o.stallTimeout_s = notNegative(v); }},
        {"death-timeout", "SECONDS", "end when a node is silent (default 10)",
         [](O &o, S v) { o.deathTimeout_s = notNegative(v); }},
        {"check-copies", nullptr,
         "after every step, compare all copies of each parameter, bit by bit",
         [](O &o, S) { o.checkCopies = true; }, true},
        {"check-messages", nullptr,
         "a header in every message, compared on arrival",
         [](O &o, S) { o.checkMessages = true; }}}},
      {"Where it runs (a launcher's variables are read by themselves)",
       {{"node", "N", "index of this node",
         [](O &o, S v) { o.node = natural(v); }},
        {"nodes", "N", "number of nodes",
         [](O &o, S v) { o.nodes = natural(v, 1, ~0u); }},
        {"master-addr", "HOST", "where node 0 listens",
         text(&O::masterAddress)},
        {"master-port", "PORT", "and on which port",
         [](O &o, S v) { o.masterPort = parsePort(v); }},
        {"emulate", "FILE",
         "speeds and links to emulate; see autohet-run --emulate",
         text(&O::emulate)},
        {"alone", nullptr,
         "one device in this very process, without a supervisor (for "
         "debuggers)",
         [](O &o, S) { o.alone = true; }}}},
      {"Instead of running",
       {{"help", nullptr, "print this text", [](O &o, S) { o.help = true; }},
        {"version", nullptr, "print the versions of runtime and program format",
         [](O &o, S) { o.version = true; }},
        {"describe", nullptr,
         "print what this executable holds: job, devices, memory",
         [](O &o, S) { o.describe = true; }},
        {"preflight", nullptr,
         "check what a run would need here: CPU features, libraries, port, "
         "memory, disk, "
         "weights",
         [](O &o, S) { o.preflight = true; }}}}};
  return table;
}

std::vector<OptionInfo> optionInfos() {
  std::vector<OptionInfo> infos;
  for (const Group &group : groups())
    for (const Option &option : group.options)
      infos.push_back({option.name, option.value, option.help, option.repeats});
  return infos;
}

std::vector<OptionInfo> jobOptionInfos() {
  std::vector<OptionInfo> infos;
  for (const OptionInfo &info : optionInfos()) {
    std::string name = info.name;
    bool isPlace = name == "node" || name == "nodes" || name == "master-addr" ||
                   name == "emulate" || name == "alone";
    bool prints = name == "help" || name == "version" || name == "describe" ||
                  name == "preflight";
    if (!isPlace && !prints)
      infos.push_back(info);
  }
  return infos;
}

static const Option *findOption(const std::string &name) {
  for (const Group &group : groups())
    for (const Option &option : group.options)
      if (name == option.name)
        return &option;
  return nullptr;
}

NodeOptions parseOptions(int argc, char **argv) {
  NodeOptions options;
  for (int index = 1; index < argc; ++index) {
    std::string argument = argv[index];
    if (argument == "-h")
      argument = "--help";
    if (argument.rfind("--", 0) != 0)
      fail(AH_ERROR_INPUT, "unexpected argument '%s'; see --help",
           argument.c_str());
    size_t equals = argument.find('=');
    std::string name =
        argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Option *option = findOption(name);
    if (!option)
      fail(AH_ERROR_INPUT, "unknown option '--%s'; see --help", name.c_str());
    std::string value =
        equals == std::string::npos ? "" : argument.substr(equals + 1);
    bool optional = option->value && option->value[0] == '[';
    if (!option->value && equals != std::string::npos)
      fail(AH_ERROR_INPUT, "option --%s takes no value", name.c_str());
    if (optional && equals != std::string::npos && value.empty())
      fail(AH_ERROR_INPUT, "option --%s: found nothing behind '='; see --help",
           name.c_str());
    if (option->value && !optional && equals == std::string::npos) {
      if (++index == argc)
        fail(AH_ERROR_INPUT, "option --%s needs a value: %s", name.c_str(),
             option->value);
      value = argv[index];
    }
    try {
      option->set(options, value);
    } catch (const Error &error) {
      fail(error.status, "option --%s: %s", name.c_str(), error.what());
    }
    options.given.insert(name);
    if (option->changesNumbers)
      options.numbersText += name + "=" + value + "\n";
  }
  if (!options.help)
    checkTogether(options);
  return options;
}

std::string helpText(const char *program) {
  std::string result =
      format("Usage: %s [options]\n\n"
             "Trains or runs the model that this executable was compiled for, "
             "together with the\n"
             "executables of the job's other nodes. Start it once a node, by "
             "autohet-run, mpirun,\n"
             "srun or by hand; a job of one node needs nothing else.\n\n"
             "  %s --data text.bin --data-dtype uint16 --steps 100 --lr 1e-3\n"
             "  %s --inputs in.safetensors --labels labels.safetensors --steps "
             "3 --save-loss l.jsonl\n",
             program, program, program);
  for (const Group &group : groups()) {
    result += format("\n%s:\n", group.title);
    for (const Option &option : group.options) {
      std::string left = format("  --%s", option.name);
      if (option.value)
        left += (option.value[0] == '[' ? "" : " ") + std::string(option.value);
      left.resize(std::max<size_t>(left.size() + 2, 28), ' ');
      // Wrapped at 80 columns, continued under the help's column.
      std::string line = left;
      std::string word;
      for (const char *at = option.help;; ++at) {
        if (*at != ' ' && *at) {
          word += *at;
          continue;
        }
        if (line.size() + word.size() > 80) {
          line.pop_back();
          result += line + "\n";
          line.assign(28, ' ');
        }
        line += word + " ";
        word.clear();
        if (!*at)
          break;
      }
      line.pop_back();
      result += line + "\n";
    }
  }
  return result;
}

} // namespace autohet::runtime
