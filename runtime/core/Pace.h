//===- Pace.h - an emulated device's speed ----------------------*- C++ -*-===//
//
// A device with a share of a core takes, for what the core does in t seconds, t
// / share: however short that is, and whatever was before. So whoever computes
// for it says when, and is held back until the device would have been done.
// Time of the thread's is counted, so that a wait for the core is none of the
// device's work; such a wait is made up for afterwards, if the device goes on
// working. A device that was idle has saved nothing up.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_PACE_H
#define AUTOHET_RUNTIME_CORE_PACE_H

#include <atomic>
#include <cstdint>
#include <mutex>

namespace autohet::runtime {

class Pace {
public:
  /// `share` in cores; 0: nobody is held back.
  explicit Pace(double share) : share(share) {}

  /// Work of the calling thread. Threads of one device share its speed.
  class Work {
  public:
    explicit Work(Pace &pace) : pace(pace) {
      if (pace.isOn())
        begin();
    }
    ~Work() {
      if (pace.isOn())
        end();
    }
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

  private:
    Pace &pace;
    int64_t threadBegin_ns = 0;

    void begin();
    void end();
  };

  /// A wait of the calling thread: the device was idle unless other threads
  /// worked meanwhile.
  class Wait {
  public:
    explicit Wait(Pace &pace) : pace(pace), begun(pace.begun) {}
    ~Wait() { pace.endWait(begun); }
    Wait(const Wait &) = delete;
    Wait &operator=(const Wait &) = delete;

  private:
    Pace &pace;
    uint64_t begun;
  };

  // The account, apart from clocks: all in nanoseconds.
  void begin(int64_t now);
  /// Until when to hold back who has computed for so long.
  int64_t count(int64_t computed);
  void end(int64_t now);

private:
  double share;
  std::mutex mutex;
  std::atomic<uint64_t> begun{0}; ///< works so far
  unsigned working = 0;           ///< threads between begin and end
  int64_t done = 0; ///< when the device will have done all that was counted
  int64_t late = 0; ///< how much later than that the last thread ended

  void endWait(uint64_t begunBefore);
  bool isOn() const { return share > 0; }
};

} // namespace autohet::runtime

#endif
