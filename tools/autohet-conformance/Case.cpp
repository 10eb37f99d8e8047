//===- Case.cpp - compile, run, compare ------------------------------------===//
//
// Through the tools that users run: autohet-compile --mode=inference, then the
// executable that it has made. What is known only from the values of an input
// (the shape of a Reshape) is bound when compiling: the compiler names the
// input, and is asked once more.
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Process.h"

#include "core/Error.h"
#include "data/Protobuf.h"
#include "data/TensorFile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

namespace fs = std::filesystem;
using namespace autohet;
using namespace autohet::conformance;
using runtime::ProtobufReader;

namespace {

/// What the harness must know of a model: fields of ModelProto and GraphProto.
struct ModelFacts {
  std::vector<std::string> inputs, outputs, ops;
  /// Of each input's dims: the name of a symbolic one, else "".
  std::map<std::string, std::vector<std::string>> dims;
};

std::string nameIn(ProtobufReader message, uint64_t field) {
  std::string name;
  while (message.next())
    if (message.field == field)
      name = message.text();
  return name;
}

/// Of an input: ValueInfoProto, TypeProto, TensorShapeProto, one in another.
std::vector<std::string> dimsOf(ProtobufReader info, const std::string &name) {
  std::vector<std::string> dims;
  auto inside = [](ProtobufReader message, uint64_t field, auto visit) {
    while (message.next())
      if (message.field == field)
        visit(message.message());
  };
  inside(info, 2, [&](ProtobufReader type) {
    inside(type, 1, [&](ProtobufReader tensor) {
      inside(tensor, 2, [&](ProtobufReader shape) {
        inside(shape, 1, [&](ProtobufReader dim) {
          bool isFixed = false;
          std::string symbol;
          while (dim.next()) {
            isFixed |= dim.field == 1;
            if (dim.field == 2)
              symbol = dim.text();
          }
          if (symbol.empty() && !isFixed) // the compiler's name for it
            symbol = name + "." + std::to_string(dims.size());
          dims.push_back(isFixed ? "" : symbol);
        });
      });
    });
  });
  return dims;
}

ModelFacts readModel(const std::string &path) {
  runtime::MappedFile file(path);
  ModelFacts facts;
  std::vector<std::string> initializers;
  ProtobufReader model(path, file.data(), file.size());
  while (model.next()) {
    if (model.field != 7 || model.type != 2)
      continue;
    ProtobufReader graph = model.message();
    while (graph.next())
      switch (graph.field) {
      case 1:
        facts.ops.push_back(nameIn(graph.message(), 4));
        break;
      case 5:
        initializers.push_back(nameIn(graph.message(), 8));
        break;
      case 11: {
        std::string name = nameIn(graph.message(), 1);
        facts.inputs.push_back(name);
        facts.dims[name] = dimsOf(graph.message(), name);
        break;
      }
      case 12:
        facts.outputs.push_back(nameIn(graph.message(), 1));
        break;
      }
  }
  // Old files list their initializers among the inputs.
  auto isInitializer = [&](const std::string &name) {
    return std::find(initializers.begin(), initializers.end(), name) !=
           initializers.end();
  };
  facts.inputs.erase(
      std::remove_if(facts.inputs.begin(), facts.inputs.end(), isInitializer),
      facts.inputs.end());
  return facts;
}

/// The message of a failed program: its first error, without our own paths.
std::string firstError(const std::string &output, const std::string &model) {
  size_t at = output.find("error: ");
  std::string text = at == std::string::npos ? output : output.substr(at + 7);
  text = text.substr(0, text.find('\n'));
  for (size_t found; (found = text.find(model)) != std::string::npos;)
    text.replace(found, model.size(), "model.onnx");
  return text;
}

class CaseRun {
public:
  CaseRun(const std::string &path, const Settings &settings)
      : settings(settings) {
    isFolder = fs::is_directory(path);
    model = isFolder ? path + "/model.onnx" : path;
    result.folder = fs::path(path).parent_path().filename().string();
    result.name = fs::path(path).filename().string();
    work = settings.work + "/" + result.folder + "." + result.name;
  }

  CaseResult run() {
    auto begin = std::chrono::steady_clock::now();
    try {
      runAll();
    } catch (const std::exception &error) {
      result.outcome = Outcome::Crash;
      result.detail = std::string("the harness: ") + error.what();
    }
    if (!settings.keep)
      fs::remove_all(work);
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    return result;
  }

private:
  void runAll() {
    facts = readModel(model);
    result.ops = facts.ops;
    std::vector<std::string> sets = findSets();
    if (!compile(sets.empty() ? "" : sets.front()))
      return;
    result.outcome = sets.empty() ? Outcome::Compiled : Outcome::Pass;
    for (const std::string &set : sets)
      if (!runSet(set))
        return;
  }

  std::vector<std::string> findSets() {
    std::vector<std::string> sets;
    for (int i = 0; isFolder; ++i) {
      std::string set = fs::path(model).parent_path() /
                        ("test_data_set_" + std::to_string(i));
      if (!fs::is_directory(set))
        break;
      sets.push_back(set);
    }
    return sets;
  }

  std::string inputFile(const std::string &set, size_t index) {
    return set + "/input_" + std::to_string(index) + ".pb";
  }

  /// Sets outcome and detail where the program has not ended well.
  bool endedWell(const Finished &process, bool isCompiler) {
    if (process.timedOut) {
      result.outcome = Outcome::Crash;
      result.detail = isCompiler ? "the compiler does not end"
                                 : "the executable does not end";
      return false;
    }
    if (process.status == 0)
      return true;
    bool hasMessage = process.output.find("error: ") != std::string::npos;
    bool isRefused = process.status == 1 && hasMessage;
    result.outcome = isRefused ? Outcome::Refused : Outcome::Crash;
    result.detail = firstError(process.output, model);
    if (!isRefused)
      result.detail =
          "status " + std::to_string(process.status) + ": " + result.detail;
    return false;
  }

  bool compile(const std::string &set) {
    fs::create_directories(work);
    std::vector<std::string> command = {
        settings.compiler, model, "--mode=inference", "-o", work + "/out"};
    command.insert(command.end(), settings.compileOptions.begin(),
                   settings.compileOptions.end());
    while (true) {
      Finished process = runProcess(command, settings.timeout_s);
      if (endedWell(process, /*isCompiler=*/true))
        return true;
      if (set.empty() ? bindDims(command) || takeWhole(command)
                      : bindDimsOf(set, command))
        continue;
      // "... give its value with --bind 'shape'=FILE"
      const std::string mark = "give its value with --bind '";
      size_t at = result.detail.find(mark);
      size_t end = at == std::string::npos
                       ? at
                       : result.detail.find("'", at + mark.size());
      if (set.empty() || end == std::string::npos)
        return false;
      std::string name =
          result.detail.substr(at + mark.size(), end - at - mark.size());
      auto input = std::find(facts.inputs.begin(), facts.inputs.end(), name);
      if (input == facts.inputs.end() ||
          std::find(result.bound.begin(), result.bound.end(), name) !=
              result.bound.end())
        return false;
      result.bound.push_back(name);
      command.push_back("--bind=" + name + "=" +
                        inputFile(set, input - facts.inputs.begin()));
    }
  }

  /// Symbolic dims are as in the set's inputs; other sets must be alike.
  bool bindDimsOf(const std::string &set, std::vector<std::string> &command) {
    if (dimsAreBound ||
        result.detail.find("dims of the model are unbound: ") != 0)
      return false;
    dimsAreBound = true;
    std::map<std::string, int64_t> extents;
    for (size_t i = 0; i < facts.inputs.size(); ++i) {
      if (!fs::exists(inputFile(set, i)))
        continue;
      runtime::TensorFiles file({"x=" + inputFile(set, i)});
      const runtime::FileTensor tensor = file.first();
      const std::vector<std::string> &dims = facts.dims[facts.inputs[i]];
      for (size_t d = 0; d < dims.size() && d < tensor.info.shape.size(); ++d)
        if (!dims[d].empty())
          extents.emplace(dims[d], tensor.info.shape[d]);
    }
    for (const auto &[symbol, extent] : extents)
      command.push_back("--dim=" + symbol + "=" + std::to_string(extent));
    return true;
  }

  /// "dims of the model are unbound: 'a' of input 'x', 'b' of input 'y'; ..."
  bool bindDims(std::vector<std::string> &command) {
    const std::string mark = "dims of the model are unbound: ";
    size_t at = result.detail.find(mark);
    if (at == std::string::npos || dimsAreBound)
      return false;
    dimsAreBound = true;
    size_t end = result.detail.find("; bind each", at);
    std::string list =
        result.detail.substr(at + mark.size(), end - at - mark.size());
    const std::string of = "' of input '";
    for (size_t from = 0; from < list.size();) {
      size_t open = list.find('\'', from), middle = list.find(of, open);
      if (open == std::string::npos || middle == std::string::npos)
        break;
      command.push_back("--dim=" + list.substr(open + 1, middle - open - 1) +
                        "=" + std::to_string(settings.extent));
      from = list.find('\'', middle + of.size());
      from = from == std::string::npos ? list.size() : from + 1;
    }
    return true;
  }

  /// "... lets one sample reach another ...": then the input is one sample.
  bool takeWhole(std::vector<std::string> &command) {
    if (isWhole ||
        (result.detail.find("lets one sample reach another") ==
             std::string::npos &&
         result.detail.find("treats samples unlike") == std::string::npos))
      return false;
    isWhole = true;
    dimsAreBound = false; // one more of them may be wanted
    command.push_back("--batch-dim=none");
    return true;
  }

  bool runSet(const std::string &set) {
    std::vector<std::string> command = {
        work + "/out/node0", "--alone", "--log-every=0",
        "--save-outputs=" + work + "/{name}.pb"};
    for (size_t i = 0; i < facts.inputs.size(); ++i)
      if (std::find(result.bound.begin(), result.bound.end(),
                    facts.inputs[i]) == result.bound.end() &&
          fs::exists(inputFile(set, i)))
        command.push_back("--inputs=" + facts.inputs[i] + "=" +
                          inputFile(set, i));
    Finished process = runProcess(command, settings.timeout_s);
    if (!endedWell(process, /*isCompiler=*/false)) {
      // What was compiled must run.
      if (result.outcome == Outcome::Refused)
        result.outcome = Outcome::Crash;
      return false;
    }
    for (size_t i = 0; i < facts.outputs.size(); ++i) {
      std::string expected = set + "/output_" + std::to_string(i) + ".pb";
      if (!compareOutput(facts.outputs[i], expected))
        return false;
    }
    return true;
  }

  bool isWrong(const std::string &detail) {
    result.outcome = Outcome::Wrong;
    result.detail = detail;
    return false;
  }

  bool compareOutput(const std::string &name, const std::string &path) {
    std::string what = "output '" + name + "'", file = name;
    std::replace(file.begin(), file.end(), '/', '_');
    file = work + "/" + file + ".pb";
    if (!fs::exists(file))
      return isWrong(what + " is not there");
    runtime::TensorFiles foundFile({"found=" + file}),
        wantedFile({"wanted=" + path});
    runtime::FileTensor given = foundFile.first(), wanted = wantedFile.first();
    const runtime::TensorInfo *found = &given.info;
    auto describe = [](const runtime::TensorInfo &info) {
      return std::string(runtime::dtypeName(info.dtype)) + " " +
             runtime::shapeText(info.shape.data(), info.shape.size());
    };
    // ONNX 1.13 wrote bfloat16 as the integers of its bits.
    if (found->dtype == AH_BF16 && wanted.info.dtype == AH_U16)
      wanted.info.dtype = AH_BF16;
    if (found->dtype != wanted.info.dtype || found->shape != wanted.info.shape)
      return isWrong(what + " is " + describe(*found) + ", wanted " +
                     describe(wanted.info));
    const char *data = given.data;
    bool isFloat = found->dtype <= AH_F64;
    if (!isFloat) {
      if (memcmp(data, wanted.data, found->bytes) == 0)
        return true;
      if (found->dtype > AH_U64) // bytes that stand for no number here
        return isWrong(what + " differs in its " +
                       runtime::dtypeName(found->dtype) + " elements");
    }
    std::vector<double> left =
        runtime::toDoubles(found->dtype, data, found->elements());
    std::vector<double> right =
        runtime::toDoubles(found->dtype, wanted.data, found->elements());
    // A bfloat16 has eight bits: one unit in the last place may differ.
    double rtol = found->dtype == AH_BF16 ? std::max(settings.rtol, 0x1p-7)
                  : isFloat               ? settings.rtol
                                          : 0;
    double atol = isFloat ? settings.atol : 0;
    for (size_t i = 0; i < left.size(); ++i) {
      bool bothNan = std::isnan(left[i]) && std::isnan(right[i]);
      if (bothNan || left[i] == right[i] ||
          std::fabs(left[i] - right[i]) <= atol + rtol * std::fabs(right[i]))
        continue;
      return isWrong(runtime::format("%s, element %zu of %zu is %.9g, wanted "
                                     "%.9g",
                                     what.c_str(), i, left.size(), left[i],
                                     right[i]));
    }
    return true;
  }

  const Settings &settings;
  std::string model, work;
  bool isFolder = false, dimsAreBound = false, isWhole = false;
  ModelFacts facts;
  CaseResult result;
};

} // namespace

CaseResult autohet::conformance::runCase(const std::string &path,
                                         const Settings &settings) {
  return CaseRun(path, settings).run();
}
