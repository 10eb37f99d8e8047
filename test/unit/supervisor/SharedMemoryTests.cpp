//===- SharedMemoryTests.cpp - whose files in /dev/shm are removed --------===//

#include "supervisor/SharedMemory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;
namespace fs = std::filesystem;

static fs::path folderOf(pid_t pid) {
  struct stat about = {};
  stat("/proc/self/ns/pid", &about);
  return "/dev/shm/autohet-" + std::to_string(about.st_ino) + "-" +
         std::to_string(pid);
}

static fs::path makeLeftover(pid_t pid, const char *file) {
  fs::path folder = folderOf(pid);
  fs::create_directory(folder);
  std::ofstream(folder / file) << "shared";
  return folder;
}

static pid_t deadProcess() {
  pid_t pid = fork();
  if (pid == 0)
    _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

TEST(SharedMemory, OfDeadSupervisorsGoes) {
  unsetenv("UCX_POSIX_DIR");
  fs::path dead = makeLeftover(deadProcess(), "ucx_shm_posix_1f"),
           foreign = makeLeftover(deadProcess(), "notes"),
           alive = makeLeftover(getppid(), "ucx_shm_posix_2f"),
           former = makeLeftover(getpid(), "ucx_shm_posix_3f");
  {
    SharedMemory memory;
    memory.open();
    EXPECT_FALSE(fs::exists(dead));
    // Not what we do not know, nor what is in use.
    EXPECT_TRUE(fs::exists(foreign / "notes"));
    EXPECT_TRUE(fs::exists(alive / "ucx_shm_posix_2f"));
    // Our own number was another's; the folder is ours now.
    EXPECT_TRUE(fs::is_empty(former));
    EXPECT_EQ(fs::path(getenv("UCX_POSIX_DIR")), former);
    // Of a worker that was killed.
    std::ofstream(former / "ucx_shm_posix_4f") << "shared";
  }
  EXPECT_FALSE(fs::exists(former));
  unsetenv("UCX_POSIX_DIR");
  fs::remove_all(foreign);
  fs::remove_all(alive);
}

TEST(SharedMemory, TheUsersPlaceStays) {
  setenv("UCX_POSIX_DIR", "/dev/shm", 1);
  SharedMemory memory;
  memory.open();
  EXPECT_FALSE(fs::exists(folderOf(getpid())));
  EXPECT_STREQ(getenv("UCX_POSIX_DIR"), "/dev/shm");
  unsetenv("UCX_POSIX_DIR");
}
