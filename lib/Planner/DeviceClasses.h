//===- DeviceClasses.h - which devices are interchangeable ------*- C++ -*-===//
//
// Searches count devices of a class instead of naming them: eight equal workers
// can be grouped in 22 ways, eight named ones in 4,140.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_DEVICECLASSES_H
#define AUTOHET_LIB_PLANNER_DEVICECLASSES_H

#include "autohet/Planner/CostModel.h"

namespace autohet {

class DeviceClasses {
public:
  /// Two devices are of one class if exchanging their names changes nothing:
  /// same kind, same links to and from all others and each other.
  explicit DeviceClasses(const CostModel &costs);

  unsigned size() const { return members.size(); }
  ClassCounts counts() const;
  llvm::ArrayRef<unsigned> of(unsigned index) const { return members[index]; }

  /// Devices for each group in turn, ascending; each at most once.
  std::vector<std::vector<unsigned>>
  assign(llvm::ArrayRef<ClassCounts> groups) const;

private:
  std::vector<std::vector<unsigned>> members;
};

} // namespace autohet

#endif
