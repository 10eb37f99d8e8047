//===- MachineClasses.h - devices as counts ---------------------*- C++ -*-===//
//
// A search over ten thousand devices must not name them. Devices of one kind in
// nodes of one make, reached over the same links, form a class; all that a
// search needs of a class is how many there are, how many share a node, and
// the links between classes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_MACHINECLASSES_H
#define AUTOHET_PLANNER_MACHINECLASSES_H

#include "autohet/Cluster/Cluster.h"

namespace autohet {

/// How many devices of each class.
using ClassCounts = std::vector<unsigned>;

struct MachineClass {
  unsigned kind = 0;             ///< into Cluster::kinds
  unsigned node_make = 0;        ///< classes of one make share nodes
  unsigned per_node = 0;         ///< in each node of that make
  std::vector<unsigned> devices; ///< ascending: node after node
};

class MachineClasses {
public:
  explicit MachineClasses(const Cluster &cluster);

  llvm::ArrayRef<MachineClass> classes() const { return allClasses; }
  size_t size() const { return allClasses.size(); }
  const MachineClass &operator[](unsigned index) const {
    return allClasses[index];
  }
  unsigned classOf(unsigned device) const { return ofDevice[device]; }
  ClassCounts counts() const;

  /// What a message between devices of two classes takes.
  const Link &link(unsigned from, unsigned to, bool isSameNode) const {
    return (isSameNode ? inside : across)[from * allClasses.size() + to];
  }
  /// The best of both, where the classes share nodes.
  Link bestLink(unsigned from, unsigned to) const;

private:
  std::vector<MachineClass> allClasses;
  std::vector<unsigned> ofDevice;
  std::vector<Link> inside, across; ///< of each ordered pair of classes
};

} // namespace autohet

#endif
