//===- FuzzJob.cpp - any text as a job file -------------------------------===//

#include "FuzzFile.h"

#include "autohet/Job/JobFile.h"

using namespace autohet;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzFile file(data, size);
  llvm::Expected<JobFile> job =
      readJobFile(file.path(), {{"steps", "N", ""}, {"emulate", "", ""}});
  if (!job && llvm::toString(job.takeError()).empty())
    abort();
  return 0;
}
