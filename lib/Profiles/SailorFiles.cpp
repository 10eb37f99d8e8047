//===- SailorFiles.cpp - reading Sailor's profiles ------------------------===//
//
// The files nest by names (model, kind, zone) and by numbers written as keys.
// Every walk below checks each level and says where a wrong one stands.
//
//===----------------------------------------------------------------------===//

#include "autohet/Profiles/SailorData.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

namespace autohet {
namespace {

/// One file: its tree and what is wrong with it.
struct SourceFile {
  explicit SourceFile(llvm::StringRef path) : path(path.str()), errors(path) {}

  llvm::Error load() {
    llvm::Expected<std::string> text = readTextFile(path);
    if (!text)
      return text.takeError();
    llvm::Expected<Tree> parsed = parseJson(*text, path);
    if (!parsed)
      return parsed.takeError();
    tree = std::move(*parsed);
    return llvm::Error::success();
  }

  std::string path;
  ErrorList errors;
  Tree tree;
};

using EntryVisitor = llvm::function_ref<void(const Tree::Entry &)>;

void forEach(const Tree &tree, const llvm::Twine &what, ErrorList &errors,
             EntryVisitor visit) {
  if (tree.kind != Tree::Kind::Mapping) {
    errors.add(tree.location,
               what + " must be a mapping, found " + tree.describe());
    return;
  }
  for (const Tree::Entry &entry : tree.entries)
    visit(entry);
}

/// A key that is a number: "4".
int64_t numberOf(const Tree::Entry &entry, const llvm::Twine &what,
                 ErrorList &errors) {
  int64_t number = 0;
  if (llvm::StringRef(entry.key).getAsInteger(10, number) || number < 0)
    errors.add(entry.location,
               what + " must be a number, found '" + entry.key + "'");
  return number;
}

/// `count` numbers of a list; coefficients may be negative.
bool readNumbers(const Tree &tree, const llvm::Twine &what, size_t count,
                 double *values, ErrorList &errors) {
  if (tree.kind != Tree::Kind::Sequence || tree.items.size() != count) {
    errors.add(tree.location, what + " must be a list of " +
                                  llvm::Twine(count) + " numbers, found " +
                                  tree.describe());
    return false;
  }
  for (size_t index = 0; index < count; ++index) {
    const Tree &item = tree.items[index];
    if (item.kind == Tree::Kind::Scalar && !item.quoted &&
        !llvm::StringRef(item.text).getAsDouble(values[index]) &&
        std::isfinite(values[index]))
      continue;
    errors.add(item.location,
               what + " must be numbers, found " + item.describe());
    return false;
  }
  return true;
}

//===-- Layers ------------------------------------------------------------===//

class ProfileReader {
public:
  ProfileReader(SailorData &data, std::vector<std::string> &warnings)
      : data(data), warnings(warnings) {}

  void readTimes(SourceFile &file) {
    ErrorList &errors = file.errors;
    forEach(file.tree, "the profile", errors, [&](const Tree::Entry &model) {
      SailorModel &target = data.models[model.key];
      target.name = model.key;
      forEach(model.value, "a model", errors, [&](const Tree::Entry &kind) {
        forEach(kind.value, "a kind", errors, [&](const Tree::Entry &batch) {
          int64_t size = numberOf(batch, "a microbatch size", errors);
          forEach(batch.value, "a size", errors, [&](const Tree::Entry &part) {
            int64_t tensor = numberOf(part, "tensor parallelism", errors);
            readLayers(target, {kind.key, size, tensor}, part.value, file);
          });
        });
      });
    });
  }

  void readSizes(SourceFile &file) {
    ErrorList &errors = file.errors;
    forEach(file.tree, "the profile", errors, [&](const Tree::Entry &model) {
      SailorModel &target = data.models[model.key];
      target.name = model.key;
      forEach(model.value, "a model", errors, [&](const Tree::Entry &part) {
        int64_t tensor = numberOf(part, "tensor parallelism", errors);
        std::vector<LayerFloats> &layers = target.sizes[tensor];
        forEach(part.value, "layers", errors, [&](const Tree::Entry &entry) {
          unsigned layer = checkLayer(entry, layers.size(), errors);
          LayerFloats floats;
          readFloat(entry.value, "params_floats", floats.parameters, errors);
          readFloat(entry.value, "act_output_floats", floats.output, errors);
          readFloat(entry.value, "act_mem_floats", floats.kept, errors);
          layers.resize(layer);
          layers.push_back(floats);
        });
        if (layers.size() > target.layer_count)
          target.layer_count = layers.size();
      });
    });
  }

  /// Times and sizes must speak of the same layers.
  llvm::Error checkCounts() const {
    for (const auto &[name, model] : data.models) {
      if (model.sizes.empty())
        return llvm::createStringError("no layer sizes of model '" + name +
                                       "'");
      for (const auto &[tensor, layers] : model.sizes)
        if (layers.size() != model.layer_count)
          return llvm::createStringError(
              "model '" + name + "' has " + std::to_string(layers.size()) +
              " layers with tensor parallelism " + std::to_string(tensor) +
              ", otherwise " + std::to_string(model.layer_count));
      for (const auto &[key, layers] : model.times)
        if (layers.size() != model.layer_count)
          return llvm::createStringError(
              "model '" + name + "' has times of " +
              std::to_string(layers.size()) + " layers on " + std::get<0>(key) +
              ", sizes of " + std::to_string(model.layer_count));
    }
    return llvm::Error::success();
  }

private:
  /// Layers come in ascending order, from 0.
  static unsigned checkLayer(const Tree::Entry &entry, size_t expected,
                             ErrorList &errors) {
    int64_t layer = numberOf(entry, "a layer", errors);
    if (layer != static_cast<int64_t>(expected))
      errors.add(entry.location, "expected layer " + llvm::Twine(expected) +
                                     ", found '" + entry.key + "'");
    return expected;
  }

  static void readFloat(const Tree &tree, llvm::StringRef key, double &value,
                        ErrorList &errors) {
    if (const Tree *found = tree.find(key))
      readNumber(*found, "'" + key + "'", value, errors);
    else
      errors.add(tree.location, "a layer needs '" + key + "'");
  }

  void readLayers(SailorModel &model,
                  std::tuple<std::string, int64_t, int64_t> key,
                  const Tree &tree, SourceFile &file) {
    std::vector<LayerSeconds> layers;
    bool isMeasured = true;
    forEach(tree, "layers", file.errors, [&](const Tree::Entry &entry) {
      checkLayer(entry, layers.size(), file.errors);
      double values[3] = {0, 0, 0};
      readNumbers(entry.value, "a layer", 3, values, file.errors);
      isMeasured &= values[0] > 0 && values[1] > 0 && values[2] > 0;
      layers.push_back({values[0], values[1], values[2]});
    });
    if (isMeasured) {
      model.times[key] = std::move(layers);
      return;
    }
    warnings.push_back(formatError(file.path, tree.location,
                                   "left out: a time of 0 s is no measurement "
                                   "(" +
                                       model.name + " on " + std::get<0>(key) +
                                       ")"));
  }

  SailorData &data;
  std::vector<std::string> &warnings;
};

//===-- Links -------------------------------------------------------------===//

bool readFit(const Tree &tree, BandwidthFit &fit, ErrorList &errors) {
  if (tree.kind != Tree::Kind::Sequence || tree.items.size() != 2) {
    errors.add(tree.location,
               "a bandwidth must be [[c0, c1, c2], peak], found " +
                   tree.describe());
    return false;
  }
  bool isFine = readNumbers(tree.items[0], "coefficients", 3, fit.c, errors);
  isFine &= readNumber(tree.items[1], "a peak", fit.peak_bytes_per_s, errors);
  if (isFine && fit.peak_bytes_per_s <= 0) {
    errors.add(tree.items[1].location, "a peak must be above 0 bytes/s");
    return false;
  }
  return isFine;
}

void readZones(SourceFile &file, SailorData &data) {
  ErrorList &errors = file.errors;
  auto ends =
      [&](const Tree &tree,
          llvm::function_ref<void(SailorData::Link, const Tree &)> visit) {
        forEach(tree, "zones", errors, [&](const Tree::Entry &zone) {
          forEach(zone.value, "a zone", errors, [&](const Tree::Entry &kind) {
            forEach(kind.value, "a kind", errors, [&](const Tree::Entry &gpus) {
              visit({zone.key, kind.key, numberOf(gpus, "GPUs in use", errors)},
                    gpus.value);
            });
          });
        });
      };
  ends(file.tree, [&](SailorData::Link from, const Tree &below) {
    ends(below, [&](SailorData::Link to, const Tree &leaf) {
      readFit(leaf, data.between[{from, to}], errors);
    });
  });
}

void readKindFits(const Tree &tree,
                  std::map<std::pair<std::string, int64_t>, BandwidthFit> &fits,
                  ErrorList &errors) {
  forEach(tree, "bandwidths", errors, [&](const Tree::Entry &kind) {
    forEach(kind.value, "a kind", errors, [&](const Tree::Entry &gpus) {
      int64_t count = numberOf(gpus, "GPUs in use", errors);
      readFit(gpus.value, fits[{kind.key, count}], errors);
    });
  });
}

} // namespace

llvm::Expected<SailorData> loadSailorData(llvm::StringRef folder,
                                          std::vector<std::string> &warnings) {
  SailorData data;
  ProfileReader profiles(data, warnings);
  auto read = [&](llvm::StringRef name,
                  llvm::function_ref<void(SourceFile &)> use) -> llvm::Error {
    SourceFile file((folder + "/" + name).str());
    if (llvm::Error error = file.load())
      return error;
    use(file);
    return file.errors.take();
  };
  using Reader = llvm::function_ref<void(SourceFile &)>;
  auto times = [&](SourceFile &file) { profiles.readTimes(file); };
  auto sizes = [&](SourceFile &file) { profiles.readSizes(file); };
  auto zones = [&](SourceFile &file) { readZones(file, data); };
  auto homogeneous = [&](SourceFile &file) {
    for (auto [key, fits] : {std::pair("inter", &data.same_kind),
                             std::pair("intra", &data.inside)})
      if (const Tree *tree = file.tree.find(key))
        readKindFits(*tree, *fits, file.errors);
      else
        file.errors.add(file.tree.location,
                        "missing key '" + llvm::Twine(key) + "'");
  };
  auto cluster = [&](SourceFile &file) {
    data.kinds = readSailorMachines(file.tree, file.path, file.errors).kinds;
  };
  const std::pair<const char *, Reader> files[] = {
      {"profiles/layer_times.json", times},
      {"profiles/layer_memory.json", sizes},
      {"network/multizone_bandwidths_het.json", zones},
      {"network/network_coeffs_all_homo.json", homogeneous},
      {"config/basic_cluster_config.json", cluster}};
  for (const auto &[name, use] : files)
    if (llvm::Error error = read(name, use))
      return error;
  if (llvm::Error error = profiles.checkCounts())
    return error;
  return data;
}

} // namespace autohet
