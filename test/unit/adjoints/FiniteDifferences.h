//===- FiniteDifferences.h - adjoints against central differences -*- C++ -*-===//
//
// A forward function in het text is compiled twice, by the whole chain of the
// product: as it is, and differentiated. For random weights w the gradient of
// sum(w * result) by each element is compared with
// (f(x + h) - f(x - h)) / 2h, summed in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_ADJOINTS_FINITEDIFFERENCES_H
#define AUTOHET_TEST_UNIT_ADJOINTS_FINITEDIFFERENCES_H

#include <cstdint>
#include <string>
#include <vector>

namespace autohet::test {

struct Argument {
  enum Kind {
    Differentiated, ///< f32, compared element by element
    Fixed,          ///< f32, a constant to calculus
    Integers,       ///< i64
    Booleans,       ///< i1
  };
  std::string type;
  Kind kind = Differentiated;
  /// Elements are drawn from [low, high).
  double low = -1, high = 1;
};

/// `body` computes the f32 value %y of type `resultType` from %a0, %a1, ...
void checkAdjoint(const std::vector<Argument> &arguments,
                  const std::string &body, const std::string &resultType);

} // namespace autohet::test

#endif
