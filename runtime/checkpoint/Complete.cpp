//===- Complete.cpp - whether a checkpoint has all of every tensor ----------===//
//
// A manifest that was cut, merged or edited may still name only good files.
// What it lists must be the whole of every tensor, or a resumed run would begin
// with numbers that nobody has trained.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Checkpoint.h"
#include "core/Error.h"
#include "core/Program.h"

#include <algorithm>
#include <map>
#include <set>

namespace autohet::runtime {

namespace {

bool isEmpty(const Box &box) {
  return std::find(box.size.begin(), box.size.end(), 0) != box.size.end();
}

/// What two boxes of one tensor share.
Box intersection(const Box &a, const Box &b) {
  Box shared = a;
  for (size_t dim = 0; dim < a.size.size(); ++dim) {
    int64_t end =
        std::min(a.offset[dim] + a.size[dim], b.offset[dim] + b.size[dim]);
    shared.offset[dim] = std::max(a.offset[dim], b.offset[dim]);
    shared.size[dim] = std::max<int64_t>(0, end - shared.offset[dim]);
  }
  return shared;
}

/// Appends what of `box` is outside of `shared`, which lies in it: what is
/// before and what is after it, one dimension after the other.
void subtract(Box box, const Box &shared, std::vector<Box> &rest) {
  for (size_t dim = 0; dim < box.size.size(); ++dim) {
    int64_t begin = shared.offset[dim], end = begin + shared.size[dim];
    Box before = box, after = box;
    before.size[dim] = begin - box.offset[dim];
    after.offset[dim] = end;
    after.size[dim] = box.offset[dim] + box.size[dim] - end;
    for (const Box *part : {&before, &after})
      if (!isEmpty(*part))
        rest.push_back(*part);
    box.offset[dim] = begin;
    box.size[dim] = shared.size[dim];
  }
}

class Check {
public:
  Check(const CheckpointManifest &manifest, const std::string &folder)
      : manifest(manifest), folder(folder) {}

  void run() {
    if (manifest.slices.empty())
      wrong("it has no slices");
    std::set<std::string> files, keys;
    for (const CheckpointFile &file : manifest.files)
      if (!files.insert(file.name).second)
        wrong("its file '" + file.name + "' is listed twice");
    for (const SliceRecord &slice : manifest.slices) {
      if (!files.count(slice.file))
        wrong("'" + slice.key() + "' is in '" + slice.file +
              "', which is not one of its files");
      if (!keys.insert(slice.file + "/" + slice.key()).second)
        wrong("'" + slice.key() + "' in '" + slice.file + "' is listed twice");
      tensors[slice.name][slice.kind].push_back(&slice);
    }
    for (const auto &[name, kinds] : tensors)
      checkTensor(name, kinds);
  }

private:
  using Slices = std::vector<const SliceRecord *>;
  using Kinds = std::map<SliceKind, Slices>;

  [[noreturn]] void wrong(const std::string &what) const {
    fail(AH_ERROR_INPUT, "checkpoint '%s': %s", folder.c_str(), what.c_str());
  }

  void checkTensor(const std::string &name, const Kinds &kinds) const {
    bool isAdam =
        manifest.optimizer == AH_ADAM || manifest.optimizer == AH_ADAMW;
    bool hasMoments =
        kinds.count(SliceKind::Mean) || kinds.count(SliceKind::Square);
    for (SliceKind kind :
         {SliceKind::Parameter, SliceKind::Mean, SliceKind::Square})
      if (!kinds.count(kind) && (kind == SliceKind::Parameter || hasMoments))
        wrong("it has no " + std::string(sliceKindName(kind)) + " of '" + name +
              "'");
    if (hasMoments && !isAdam)
      wrong("'" + name + "' has moments, which its optimizer does not");
    const SliceRecord &first = *kinds.begin()->second.front();
    for (const auto &[kind, slices] : kinds) {
      for (const SliceRecord *slice : slices)
        if (slice->box.global != first.box.global ||
            slice->dtype != first.dtype)
          wrong("'" + slice->key() + "' is of " + describe(*slice) + ", '" +
                first.key() + "' of " + describe(first));
      checkCover(slices);
      // Only what is frozen may be there several times, once a device that
      // holds it; it has no moments.
      if (hasMoments)
        checkDisjoint(slices);
    }
  }

  static std::string describe(const SliceRecord &slice) {
    const std::vector<int64_t> &shape = slice.box.global;
    return dtypeName(slice.dtype) + std::string(" ") +
           shapeText(shape.data(), shape.size());
  }

  void checkCover(const Slices &slices) const {
    std::vector<Box> missing = {Box::whole(slices.front()->box.global)}, rest;
    if (isEmpty(missing.front()))
      return;
    for (const SliceRecord *slice : slices) {
      rest.clear();
      for (const Box &box : missing) {
        Box shared = intersection(box, slice->box);
        if (isEmpty(shared))
          rest.push_back(box);
        else
          subtract(box, shared, rest);
      }
      missing.swap(rest);
    }
    if (!missing.empty())
      wrong(std::string(sliceKindName(slices.front()->kind)) + " of '" +
            slices.front()->name + "' is not whole: " + missing.front().text() +
            " is in no slice");
  }

  void checkDisjoint(const Slices &slices) const {
    for (size_t i = 0; i < slices.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        Box shared = intersection(slices[i]->box, slices[j]->box);
        if (!isEmpty(shared))
          wrong("'" + slices[j]->key() + "' in '" + slices[j]->file +
                "' and '" + slices[i]->key() + "' in '" + slices[i]->file +
                "' overlap in " + shared.text());
      }
  }

  const CheckpointManifest &manifest;
  const std::string &folder;
  std::map<std::string, Kinds> tensors;
};

} // namespace

void checkComplete(const CheckpointManifest &manifest,
                   const std::string &folder) {
  Check(manifest, folder).run();
}

} // namespace autohet::runtime
