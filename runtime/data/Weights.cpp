//===- Weights.cpp - initial parameters -------------------------------------===//

#include "data/Weights.h"

#include "autohet/runtime/random.h"
#include "core/Error.h"
#include "data/Box.h"
#include "data/WeightFiles.h"

#include <cstring>
#include <map>

namespace autohet::runtime {

namespace {
class Loader {
public:
  Loader(Memory &memory, const WeightOptions &options)
      : memory(memory), program(memory.program), options(options) {
    if (!options.overrideFiles.empty())
      files.emplace(options.overrideFiles);
  }

  std::vector<std::string> run() {
    for (const ah_parameter &parameter : program.parameters)
      held[program.string(parameter.name)] += Box::of(parameter).elements();
    for (const ah_parameter &parameter : program.parameters)
      load(parameter);
    if (files)
      reportUnused();
    if (files && options.draw && !options.skipTrained)
      reportDrawn();
    return std::move(warnings);
  }

private:
  WeightsIndex &needIndex() {
    if (!index) {
      index.emplace(options.indexPath);
      uint64_t wanted = program.header().structure_hash;
      if (index->structureHash() != wanted)
        fail(AH_ERROR_MISMATCH,
             "'%s' is of another model: structure %016llx, the program's is "
             "%016llx",
             options.indexPath.c_str(),
             (unsigned long long)index->structureHash(),
             (unsigned long long)wanted);
    }
    return *index;
  }

  void load(const ah_parameter &parameter) {
    std::string name = program.string(parameter.name);
    if (parameter.trained && options.skipTrained)
      return;
    if (files && loadFromFiles(parameter, name))
      return;
    if (options.draw && (parameter.trained || isNowhere(name)))
      return draw(parameter, name);
    if (parameter.trained && files)
      files->failMissing(name);
    loadFromIndex(parameter, name);
  }

  /// Whether the model came without it: of a config, where nothing is trained.
  bool isNowhere(const std::string &name) {
    const auto &tensors = needIndex().tensors();
    auto found = tensors.find(name);
    return found != tensors.end() && found->second.file.empty();
  }

  void requireSame(const std::string &path, const std::string &name,
                   uint8_t dtype, const std::vector<int64_t> &shape,
                   const ah_parameter &parameter, bool mayWiden) {
    Box box = Box::of(parameter);
    bool fits =
        mayWiden ? widens(dtype, parameter.dtype) : dtype == parameter.dtype;
    if (shape == box.global && fits)
      return;
    if (fits) // the dtype need not be the parameter's
      fail(AH_ERROR_MISMATCH, "'%s': parameter '%s' has shape %s, wanted %s",
           path.c_str(), name.c_str(),
           shapeText(shape.data(), shape.size()).c_str(),
           shapeText(box.global.data(), box.global.size()).c_str());
    fail(AH_ERROR_MISMATCH, "'%s': parameter '%s' is %s %s, wanted %s %s",
         path.c_str(), name.c_str(), dtypeName(dtype),
         shapeText(shape.data(), shape.size()).c_str(),
         dtypeName(parameter.dtype),
         shapeText(box.global.data(), box.global.size()).c_str());
  }

  /// The box of a whole tensor of `dtype` that is held here, as the parameter's
  /// dtype.
  static std::vector<char> pack(const ah_parameter &parameter, uint8_t dtype,
                                const char *global, bool transposed) {
    Box box = Box::of(parameter);
    unsigned bytes = dtypeBytes(dtype);
    std::vector<char> packed(box.elements() * bytes);
    copyFromGlobal(box, bytes, global, packed.data(), transposed);
    return dtype == parameter.dtype
               ? packed
               : widened(dtype, packed.data(), box.elements());
  }

  /// A tied parameter may be there under any of its names, or under several.
  std::vector<const WeightFiles::Tensor *>
  findInFiles(const std::string &name) {
    std::vector<const WeightFiles::Tensor *> found;
    if (const WeightFiles::Tensor *tensor = files->find(name))
      found.push_back(tensor);
    if (!options.indexPath.empty())
      for (auto &[alias, target] : needIndex().aliases())
        if (target == name)
          if (const WeightFiles::Tensor *tensor = files->find(alias))
            found.push_back(tensor);
    return found;
  }

  bool loadFromFiles(const ah_parameter &parameter, const std::string &name) {
    std::vector<const WeightFiles::Tensor *> found = findInFiles(name);
    if (found.empty())
      return false;
    std::vector<char> first;
    for (const WeightFiles::Tensor *tensor : found) {
      const TensorInfo &info = *tensor->info;
      requireSame(tensor->file->path(), info.name, info.dtype, info.shape,
                  parameter, /*mayWiden=*/true);
      std::vector<char> packed =
          pack(parameter, info.dtype, tensor->data(), false);
      if (first.empty())
        first = std::move(packed);
      else if (packed != first)
        fail(AH_ERROR_INPUT,
             "'%s': '%s' and '%s' differ, and are one parameter of the model "
             "(tied): give it under one name, or equal under both",
             files->path().c_str(), found[0]->info->name.c_str(),
             info.name.c_str());
    }
    memory.write(parameter.parameter_buffer, first.data(), first.size());
    return true;
  }

  void loadFromIndex(const ah_parameter &parameter, const std::string &name) {
    WeightsIndex &weights = needIndex();
    auto found = weights.tensors().find(name);
    if (found == weights.tensors().end())
      fail(AH_ERROR_MISMATCH,
           "'%s' has no tensor '%s', which the program needs",
           weights.path().c_str(), name.c_str());
    const StoredTensor &tensor = found->second;
    if (tensor.file.empty())
      fail(AH_ERROR_INPUT,
           "'%s' says no file for '%s': the model has no weights of its own; "
           "start with --init, --weights FILE or --resume",
           weights.path().c_str(), name.c_str());
    requireSame(weights.path(), name, tensor.dtype, tensor.shape, parameter,
                /*mayWiden=*/false);
    // A part is read without the rest, which its checksum would need. Queries,
    // keys and values may be parts that make up the whole: looked at once.
    Box box = Box::of(parameter);
    int64_t &parts = held[name];
    if (box.isWhole() || parts == Box::whole(box.global).elements()) {
      weights.verify(tensor);
      parts = 0;
    }
    std::vector<char> packed =
        pack(parameter, tensor.dtype, weights.data(tensor), tensor.transposed);
    weights.release(tensor);
    memory.write(parameter.parameter_buffer, packed.data(), packed.size());
  }

  // Norms start as the identity and biases at zero, as PyTorch's modules do;
  // matrices are normal with one deviation.
  void draw(const ah_parameter &parameter, const std::string &name) {
    Box box = Box::of(parameter);
    std::vector<float> values(box.elements());
    if (parameter.dtype != AH_F32)
      fail(AH_ERROR_INPUT, "parameter '%s' is %s; --init draws float32",
           name.c_str(), dtypeName(parameter.dtype));
    if (box.global.size() < 2) {
      bool isBias =
          name.size() >= 4 && name.compare(name.size() - 4, 4, "bias") == 0;
      for (float &value : values)
        value = isBias ? 0 : 1;
    } else {
      drawNormal(box, ah_init_key(options.seed, name.c_str()), values);
    }
    memory.write(parameter.parameter_buffer, values.data(),
                 values.size() * sizeof(float));
  }

  void drawNormal(const Box &box, uint64_t key, std::vector<float> &values) {
    std::vector<int64_t> at(box.size.size(), 0);
    for (float &value : values) {
      uint64_t element = 0;
      for (size_t dim = 0; dim < at.size(); ++dim)
        element = element * box.global[dim] + box.offset[dim] + at[dim];
      value = static_cast<float>(
          options.deviation *
          ah_normal(ah_philox(key, element, AH_RANDOM_INIT, 0)));
      for (size_t dim = at.size(); dim-- > 0;) {
        if (++at[dim] < box.size[dim])
          break;
        at[dim] = 0;
      }
    }
  }

  /// A warning about `names`: their number, and those that a line holds.
  void warnOf(const char *what, const std::vector<std::string> &names) {
    if (names.empty())
      return;
    std::string some;
    for (const std::string &name : names)
      if (some.size() < 300)
        some += " " + name;
    warnings.push_back(format("'%s' %s (%zu):%s", files->path().c_str(), what,
                              names.size(), some.c_str()));
  }

  // Only the index knows the names that other devices hold.
  void reportUnused() {
    WeightsIndex &weights = needIndex();
    std::vector<std::string> unknown;
    for (auto &[name, unused] : files->tensors())
      if (!weights.tensors().count(name) && !weights.aliases().count(name))
        unknown.push_back(name);
    warnOf("has tensors that the model does not have", unknown);
  }

  /// --init beside files: what they lack.
  void reportDrawn() {
    std::vector<std::string> lacking;
    for (auto &[name, tensor] : needIndex().tensors())
      if (tensor.trained && findInFiles(name).empty())
        lacking.push_back(name);
    warnOf("lacks parameters, which --init draws", lacking);
  }

  Memory &memory;
  const Program &program;
  const WeightOptions &options;
  std::optional<WeightFiles> files;
  std::optional<WeightsIndex> index;
  std::map<std::string, int64_t> held; // elements of each tensor, in all parts
  std::vector<std::string> warnings;
};
} // namespace

std::vector<std::string> loadWeights(Memory &memory,
                                     const WeightOptions &options) {
  return Loader(memory, options).run();
}

} // namespace autohet::runtime
