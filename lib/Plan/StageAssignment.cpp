//===- StageAssignment.cpp - plans on a command line ----------------------===//
//
//   assignment = replica { ";" replica }
//   replica    = [ COUNT "x" SIZE ":" ] stage { "," stage }
//   stage      = unit { "&" unit } "@" device { "+" device } [ shares ]
//   shares     = "(" INTEGER { ":" INTEGER } ")"
//
//===----------------------------------------------------------------------===//

#include "autohet/Plan/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {
namespace {

class AssignmentParser {
public:
  explicit AssignmentParser(llvm::StringRef text) : whole(text) {}

  llvm::Expected<std::vector<Replica>> parse() {
    std::vector<Replica> replicas;
    llvm::SmallVector<llvm::StringRef> parts;
    whole.split(parts, ';');
    for (llvm::StringRef part : parts) {
      llvm::Expected<Replica> replica = parseReplica(part.trim());
      if (!replica)
        return replica.takeError();
      replicas.push_back(std::move(*replica));
    }
    return replicas;
  }

private:
  llvm::Error fail(llvm::StringRef at, const llvm::Twine &message) {
    size_t column = at.data() ? at.data() - whole.data() + 1 : 1;
    return llvm::createStringError(
        "stage assignment, column " + llvm::Twine(column) + ": " + message +
        "; the form is 'units@device+device(2:1), units@device'");
  }

  llvm::Expected<Replica> parseReplica(llvm::StringRef text) {
    Replica replica;
    // "5x4:" before the first '@'; shares have colons too, but behind one.
    size_t colon = text.take_front(text.find('@')).find(':');
    if (colon != llvm::StringRef::npos) {
      auto [count, size] = text.take_front(colon).split('x');
      if (count.trim().getAsInteger(10, replica.microbatches) ||
          size.trim().getAsInteger(10, replica.microbatch_size) ||
          replica.microbatches < 1 || replica.microbatch_size < 1)
        return fail(text, "'" + text.take_front(colon) +
                              "' must be COUNTxSIZE of microbatches");
      text = text.drop_front(colon + 1);
    }
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, ',');
    for (llvm::StringRef part : parts)
      if (llvm::Error error =
              parseStage(part.trim(), replica.stages.emplace_back()))
        return error;
    return replica;
  }

  llvm::Error parseStage(llvm::StringRef text, Stage &stage) {
    auto [units, devices] = text.split('@');
    if (units.trim().empty() || devices.trim().empty())
      return fail(text, "'" + text + "' is not units@devices");
    llvm::SmallVector<llvm::StringRef> parts;
    units.split(parts, '&');
    for (llvm::StringRef part : parts)
      stage.units.push_back(part.trim().str());

    devices = devices.trim();
    if (devices.consume_back(")")) {
      size_t open = devices.find('(');
      if (open == llvm::StringRef::npos)
        return fail(devices, "')' without '('");
      llvm::SmallVector<llvm::StringRef> shares;
      devices.drop_front(open + 1).split(shares, ':');
      for (llvm::StringRef share : shares)
        if (share.trim().getAsInteger(10,
                                      stage.tensor_parallel.emplace_back()) ||
            stage.tensor_parallel.back() < 0)
          return fail(share, "'" + share + "' is not a share");
      devices = devices.take_front(open);
    }
    parts.clear();
    devices.split(parts, '+');
    for (llvm::StringRef part : parts) {
      if (part.trim().empty())
        return fail(part, "a device is missing in '" + text + "'");
      stage.devices.push_back(part.trim().str());
    }
    return llvm::Error::success();
  }

  llvm::StringRef whole;
};

} // namespace

llvm::Expected<std::vector<Replica>>
parseStageAssignment(llvm::StringRef text) {
  return AssignmentParser(text).parse();
}

std::string formatStageAssignment(llvm::ArrayRef<Replica> replicas) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator semicolon("; ");
  for (const Replica &replica : replicas) {
    os << semicolon << replica.microbatches << "x" << replica.microbatch_size
       << ": ";
    llvm::ListSeparator comma;
    for (const Stage &stage : replica.stages) {
      os << comma;
      llvm::interleave(stage.units, os, "&");
      os << "@";
      llvm::interleave(stage.devices, os, "+");
      if (stage.tensor_parallel.empty())
        continue;
      os << "(";
      llvm::interleave(stage.tensor_parallel, os, ":");
      os << ")";
    }
  }
  return text;
}

} // namespace autohet
