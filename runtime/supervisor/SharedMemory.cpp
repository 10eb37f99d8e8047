//===- SharedMemory.cpp - where workers' shared memory has names ----------===//

#include "supervisor/SharedMemory.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace autohet::runtime;

static constexpr char place[] = "/dev/shm";
static constexpr char variable[] = "UCX_POSIX_DIR";

/// "autohet-4026531836-": process numbers mean something within one namespace,
/// and containers may share the folder.
static std::string ownPrefix() {
  struct stat about = {};
  stat("/proc/self/ns/pid", &about);
  return "autohet-" + std::to_string(about.st_ino) + "-";
}

static std::vector<std::string> namesIn(DIR *folder) {
  std::vector<std::string> names;
  while (dirent *entry = readdir(folder))
    names.push_back(entry->d_name);
  return names;
}

/// Only what UCX made, and only in a folder that this user made: everybody may
/// write to the place around it.
static void removeFolder(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat about;
  if (fd < 0)
    return;
  bool isOurs = fstat(fd, &about) == 0 && about.st_uid == geteuid();
  DIR *folder = fdopendir(fd);
  if (!folder) {
    close(fd);
    return;
  }
  if (isOurs) {
    for (const std::string &name : namesIn(folder))
      if (name.rfind("ucx_shm_posix_", 0) == 0)
        unlinkat(fd, name.c_str(), 0);
    rmdir(path.c_str());
  }
  closedir(folder);
}

static void sweep(const std::string &prefix) {
  DIR *folder = opendir(place);
  if (!folder)
    return;
  for (const std::string &name : namesIn(folder)) {
    if (name.rfind(prefix, 0) != 0)
      continue;
    pid_t pid = 0;
    const char *begin = name.data() + prefix.size();
    const char *end = name.data() + name.size();
    auto [rest, problem] = std::from_chars(begin, end, pid);
    if (problem != std::errc() || rest != end || pid <= 0)
      continue;
    // Our own number was another's before.
    if (pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH))
      removeFolder(std::string(place) + "/" + name);
  }
  closedir(folder);
}

void SharedMemory::open() {
  std::string prefix = ownPrefix();
  sweep(prefix);
  if (getenv(variable))
    return; // the user's choice
  std::string wanted =
      std::string(place) + "/" + prefix + std::to_string(getpid());
  if (mkdir(wanted.c_str(), 0700) != 0)
    return;
  path = wanted;
  setenv(variable, path.c_str(), /*overwrite=*/0);
}

SharedMemory::~SharedMemory() {
  if (!path.empty())
    removeFolder(path);
}
