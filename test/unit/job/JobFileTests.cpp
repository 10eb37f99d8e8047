//===- JobFileTests.cpp - all options of a job in one file ----------------===//

#include "autohet/Job/JobFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace autohet;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

static const JobOption runOptions[] = {
    {"steps", "N", ""}, {"init", "[=DEVIATION]", ""}, {"emulate", "", ""}};

static llvm::Expected<JobFile> read(llvm::StringRef text) {
  llvm::SmallString<128> path;
  int fd;
  EXPECT_FALSE(
      llvm::sys::fs::createTemporaryFile("autohet-job", "yaml", fd, path));
  llvm::raw_fd_ostream(fd, /*shouldClose=*/true) << text;
  llvm::Expected<JobFile> job = readJobFile(path, runOptions);
  llvm::sys::fs::remove(path);
  return job;
}

static std::string errorOf(llvm::StringRef text) {
  llvm::Expected<JobFile> job = read(text);
  return job ? "" : llvm::toString(job.takeError());
}

TEST(JobFile, BecomesArguments) {
  llvm::Expected<JobFile> job = read("model: gpt.onnx\n"
                                     "output: out\n"
                                     "compile:\n"
                                     "  global-batch: 64\n"
                                     "  tie: [a=b, c=d]\n"
                                     "run: {steps: 10, init: true, "
                                     "emulate: false}\n");
  ASSERT_TRUE(bool(job)) << llvm::toString(job.takeError());
  EXPECT_EQ(job->model, "gpt.onnx");
  EXPECT_EQ(job->output, "out");
  EXPECT_THAT(argumentsBeside(job->compile, {}),
              ElementsAre("--global-batch=64", "--tie=a=b", "--tie=c=d"));
  EXPECT_THAT(argumentsBeside(job->run, {}),
              ElementsAre("--steps=10", "--init"));
  // The command line wins.
  EXPECT_THAT(argumentsBeside(job->run, {"--steps", "3"}),
              ElementsAre("--init"));
  EXPECT_THAT(argumentsBeside(job->compile, {"-global-batch=8", "--tie=e=f"}),
              ElementsAre());
}

TEST(JobFile, UnknownKeysListTheKnown) {
  EXPECT_THAT(
      errorOf("modle: x\n"),
      AllOf(HasSubstr("modle"), HasSubstr("model"), HasSubstr("output")));
  EXPECT_THAT(errorOf("run:\n  stepz: 3\n"),
              AllOf(HasSubstr(":2:3: error:"), HasSubstr("stepz"),
                    HasSubstr("steps, init, emulate")));
  EXPECT_THAT(errorOf("compile:\n  elasticity: true\n"),
              AllOf(HasSubstr("elasticity"), HasSubstr("global-batch")));
}

TEST(JobFile, ValuesAreChecked) {
  EXPECT_THAT(errorOf("run: {emulate: 3}"),
              HasSubstr("'emulate' must be true or false"));
  EXPECT_THAT(errorOf("run: {steps: [1, 2]}"),
              HasSubstr("'steps' is given once"));
  EXPECT_THAT(errorOf("run: {steps: {a: 1}}"), HasSubstr("'steps' must be"));
  EXPECT_NE(errorOf("run: 3"), "");
}

TEST(JobFile, AMissingFileIsNamed) {
  llvm::Expected<JobFile> job = readJobFile("/no/such/job.yaml", runOptions);
  ASSERT_FALSE(bool(job));
  EXPECT_THAT(llvm::toString(job.takeError()), HasSubstr("/no/such/job.yaml"));
}
