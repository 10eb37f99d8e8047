//===- Deadline.h - when a search must end ----------------------*- C++ -*-===//
//
// The one way to tell a search when to end: every loop that may take long asks
// its deadline, and parts of a search get deadlines of their own from it. All
// of them read one clock, so that tests may give one that they move on.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_DEADLINE_H
#define AUTOHET_SUPPORT_DEADLINE_H

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

namespace autohet {

class Deadline {
public:
  /// Seconds since any time; they only grow.
  using Clock = std::function<double()>;

  static double steadySeconds() {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// Never.
  Deadline() = default;
  static Deadline in(double seconds, Clock clock = steadySeconds) {
    Deadline made;
    made.clock = std::move(clock);
    made.end_s = made.clock() + seconds;
    return made;
  }

  /// At once.
  static Deadline over() {
    return in(-1, [] { return 0.0; });
  }

  bool isSet() const { return end_s < never; }
  double now() const { return clock(); }
  /// Below 0 once it is over; infinity where there is none.
  double secondsLeft() const { return isSet() ? end_s - clock() : never; }
  /// Whether what takes so long, and is begun now, ends too late.
  bool isOver(double needed_s = 0) const {
    return isSet() && clock() + needed_s > end_s;
  }

  /// At the end of a part of what is left now.
  Deadline part(double fraction) const {
    Deadline made = *this;
    if (isSet()) {
      double now_s = clock();
      made.end_s = now_s + fraction * std::max(0.0, end_s - now_s);
    }
    return made;
  }
  /// So much earlier.
  Deadline before(double seconds) const {
    Deadline made = *this;
    made.end_s -= seconds;
    return made;
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  Clock clock = steadySeconds;
  double end_s = never;
};

} // namespace autohet

#endif
