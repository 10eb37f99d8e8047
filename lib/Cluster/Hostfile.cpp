//===- Hostfile.cpp - `host slots=N [type=T]` lines -----------------------===//
//
// The form that DeepSpeed, Open MPI and FlagScale users have. A slot is a
// device: host h with slots=2 has the devices h/0 and h/1.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Cluster.h"
#include "autohet/Cluster/Names.h"
#include "autohet/Support/TreeReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace autohet {
namespace {

class HostfileReader {
public:
  HostfileReader(llvm::StringRef file, const Cluster &kinds)
      : file(file), errors(file) {
    cluster.kinds = kinds.kinds;
    cluster.overrides = kinds.overrides;
    cluster.intra_node = kinds.intra_node;
    cluster.inter_node = kinds.inter_node;
  }

  llvm::Expected<Cluster> read(llvm::StringRef text) {
    unsigned line = 0;
    while (!text.empty()) {
      llvm::StringRef next;
      std::tie(next, text) = text.split('\n');
      ++line;
      next = next.split('#').first.trim();
      if (!next.empty())
        readHost(next, {line, 1});
    }
    if (errors.empty() && cluster.nodes.empty())
      errors.add({}, "names no host");
    if (typedLine && untypedLine)
      errors.add({untypedLine, 1},
                 "has no type=, but line " + llvm::Twine(typedLine) +
                     " has one: all hosts have a type or none has");
    if (llvm::Error error = errors.take())
      return error;
    return std::move(cluster);
  }

private:
  void readHost(llvm::StringRef line, TextLocation location) {
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::SplitString(line, words);
    llvm::StringRef host = words.front(), type;
    int64_t slots = 0;
    for (llvm::StringRef word : llvm::drop_begin(words)) {
      auto [key, value] = word.split('=');
      if ((key == "slots" && slots) || (key == "type" && !type.empty()))
        return errors.add(location, "'" + key + "' is given twice");
      if (key == "slots") {
        if (value.getAsInteger(10, slots) || slots < 1)
          return errors.add(location,
                            "slots must be a whole number above 0, found '" +
                                value + "'");
      } else if (key == "type") {
        type = value;
      } else {
        errors.add(location, "unknown word '" + word +
                                 "'; a line is: host slots=N [type=KIND]");
      }
    }
    if (std::string problem = findNodeNameProblem(host); !problem.empty())
      errors.add(location,
                 "'" + host + "' is not a plain host name: it " + problem);
    if (cluster.findNode(host))
      return errors.add(location, "host '" + host + "' is given twice");
    if (!slots)
      return errors.add(location, "host '" + host + "' needs slots=N");
    if (cluster.devices().size() + uint64_t(slots) > kMostDevices)
      return errors.add(location,
                        "more than " + llvm::Twine(kMostDevices) + " devices");

    (type.empty() ? untypedLine : typedLine) = location.line;
    std::optional<unsigned> kind =
        cluster.findKind(type.empty() ? "host" : type);
    if (!kind && type.empty())
      kind = cluster.addKind(hostKind());
    if (!kind)
      if (std::optional<DeviceKind> known = findKnownKind(type))
        kind = cluster.addKind(std::move(*known));
    if (!kind) {
      std::vector<llvm::StringRef> known;
      for (const DeviceKind &candidate : cluster.kinds)
        known.push_back(candidate.name);
      return errors.add(location,
                        "unknown device kind '" + type + "'; " +
                            (known.empty()
                                 ? "no cluster file defines kinds"
                                 : "known kinds: " + llvm::join(known, ", ")) +
                            "; known without being described: " +
                            llvm::join(knownKindNames(), ", "));
    }
    cluster.addNode(host, host, std::vector<unsigned>(slots, *kind));
  }

  llvm::StringRef file;
  ErrorList errors;
  Cluster cluster;
  unsigned typedLine = 0, untypedLine = 0;
};

} // namespace

llvm::Expected<Cluster> parseHostfile(llvm::StringRef text,
                                      llvm::StringRef file,
                                      const Cluster &kinds) {
  if (llvm::Error wrong = checkUtf8(text, file))
    return std::move(wrong);
  return HostfileReader(file, kinds).read(text);
}

llvm::Expected<Cluster> loadHostfile(llvm::StringRef path,
                                     const Cluster &kinds) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  return parseHostfile(*text, path, kinds);
}

} // namespace autohet
