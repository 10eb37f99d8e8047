//===- Fingerprint.cpp - what all nodes of a job must have alike ----------===//

#include "supervisor/Fingerprint.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

using namespace autohet::runtime;

static uint64_t fnv1a(const std::string &bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

static std::string hex(uint64_t value) {
  char text[17];
  snprintf(text, sizeof(text), "%016llx",
           static_cast<unsigned long long>(value));
  return text;
}

Fingerprint
autohet::runtime::fingerprintOf(const Manifest &manifest,
                                const ah_supervisor_options &options,
                                const std::string &folder) {
  Fingerprint result;
  result.structure = manifest.structure_hash;
  result.plan = manifest.plan_hash;
  result.programs = manifest.program_hash;
  result.worldSize = manifest.ranks.size();
  result.optionsHash = options.options_hash;
  result.options = options.options_text ? options.options_text : "";
  // A missing file is the worker's error, which knows whether it is needed.
  std::ifstream file(folder + "/" + manifest.weights_index, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)),
                    std::istreambuf_iterator<char>());
  result.weightsIndex = file ? hex(fnv1a(bytes)) : "absent";
  return result;
}

uint64_t Fingerprint::hash() const {
  return fnv1a(structure + "/" + plan + "/" + programs);
}

void Fingerprint::pack(Packer &packer) const {
  packer.text(structure).text(plan).text(programs).text(weightsIndex);
  packer.number(worldSize).number(optionsHash).text(options);
}

Fingerprint Fingerprint::unpack(Unpacker &unpacker) {
  Fingerprint result;
  result.structure = unpacker.text();
  result.plan = unpacker.text();
  result.programs = unpacker.text();
  result.weightsIndex = unpacker.text();
  result.worldSize = unpacker.number();
  result.optionsHash = unpacker.number();
  result.options = unpacker.text();
  return result;
}

static std::map<std::string, std::string>
parseOptions(const std::string &text) {
  std::map<std::string, std::string> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t equals = line.find('=');
    result[line.substr(0, equals)] =
        equals == std::string::npos ? "" : line.substr(equals + 1);
  }
  return result;
}

/// The first option of which the two say different things.
static std::string compareOptions(const std::string &ours,
                                  const std::string &theirs,
                                  const std::string &here,
                                  const std::string &there) {
  auto a = parseOptions(ours), b = parseOptions(theirs);
  auto value = [](const std::map<std::string, std::string> &options,
                  const std::string &name) {
    auto found = options.find(name);
    return found == options.end() ? std::string("not given") : found->second;
  };
  auto all = a;
  all.insert(b.begin(), b.end());
  for (const auto &option : all)
    if (value(a, option.first) != value(b, option.first))
      return "the option --" + option.first + " is " + value(a, option.first) +
             " on node " + here + " and " + value(b, option.first) +
             " on node " + there;
  return "the options that change numbers differ between node " + here +
         " and node " + there;
}

std::string Fingerprint::compare(const Fingerprint &other,
                                 const std::string &here,
                                 const std::string &there) const {
  auto differ = [&](const char *what, const std::string &ours,
                    const std::string &theirs) {
    return std::string(what) + " differ: " + ours + " on node " + here + ", " +
           theirs + " on node " + there +
           "; start executables of one compilation, with equal options";
  };
  if (structure != other.structure)
    return differ("the models", structure, other.structure);
  if (plan != other.plan)
    return differ("the plans", plan, other.plan);
  if (programs != other.programs)
    return differ("the programs", programs, other.programs);
  if (worldSize != other.worldSize)
    return differ("the numbers of ranks", std::to_string(worldSize),
                  std::to_string(other.worldSize));
  if (weightsIndex != other.weightsIndex)
    return differ("the weights indices (hash of their bytes)", weightsIndex,
                  other.weightsIndex);
  if (optionsHash != other.optionsHash || options != other.options)
    return compareOptions(options, other.options, here, there);
  return "";
}
