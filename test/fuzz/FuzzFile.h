//===- FuzzFile.h - bytes of a fuzzer as a file -----------------*- C++ -*-===//
//
// Readers take paths. A file in memory costs no disk and vanishes with the
// process, however that ends.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_FUZZ_FUZZFILE_H
#define AUTOHET_TEST_FUZZ_FUZZFILE_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

class FuzzFile {
public:
  FuzzFile(const uint8_t *data, size_t size)
      : descriptor(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor < 0 ||
        write(descriptor, data, size) != static_cast<ssize_t>(size))
      abort(); // no memory: nothing that follows would say anything
  }
  ~FuzzFile() { close(descriptor); }
  FuzzFile(const FuzzFile &) = delete;
  FuzzFile &operator=(const FuzzFile &) = delete;

  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
};

#endif
