//===- SanitizerOptions.cpp - what instrumented fuzzers must not check ----===//
//
// LLVM's allocators mark freed memory for AddressSanitizer in code that is
// inlined: ours does, the packaged libraries, which are not instrumented, do
// not. What one side marks and the other uses again is no fault.
//
//===----------------------------------------------------------------------===//

extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
