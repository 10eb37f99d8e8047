//===- TestJob.cpp - a job of fake nodes ----------------------------------===//

#include "TestJob.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <netinet/in.h>
#include <numeric>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime::test;

double autohet::runtime::test::now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
}

static int freePort() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr *>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

TestJob::TestJob(std::vector<uint32_t> counts)
    : ranks(std::move(counts)), pids(ranks.size(), -1),
      statuses(ranks.size(), -1), arguments(ranks.size()),
      environments(ranks.size()) {
  char name[] = "/tmp/autohet-job-XXXXXX";
  folder = mkdtemp(name);
  std::string nodes, devices;
  for (uint32_t node = 0; node < ranks.size(); ++node) {
    std::string index = std::to_string(node);
    nodes += std::string(node ? ", " : "") + "{\"name\": \"n" + index +
             "\", \"executable\": \"node" + index + "\"}";
    for (uint32_t device = 0; device < ranks[node]; ++device)
      devices += std::string(devices.empty() ? "" : ", ") +
                 "{\"node\": " + index +
                 ", \"device\": " + std::to_string(device) + "}";
  }
  manifest = "{\"format\": 1, \"name\": \"job\", \"structure_hash\": \"1\", "
             "\"plan_hash\": \"2\", \"program_hash\": \"3\", "
             "\"weights_index\": \"w\",\n \"nodes\": [" +
             nodes + "],\n \"ranks\": [" + devices + "]}\n";
  with("master-port=" + std::to_string(freePort()));
}

TestJob::~TestJob() {
  for (pid_t pid : remaining())
    kill(pid, SIGKILL);
  wait(5);
  std::string command = "rm -rf '" + folder + "'";
  (void)!system(command.c_str());
}

TestJob &TestJob::with(const std::string &argument) {
  for (auto &list : arguments)
    list.push_back(argument);
  return *this;
}

TestJob &TestJob::with(uint32_t node, const std::string &argument) {
  arguments[node].push_back(argument);
  return *this;
}

TestJob &TestJob::set(uint32_t node, const std::string &name,
                      const std::string &value) {
  environments[node][name] = value;
  return *this;
}

void TestJob::start(uint32_t node) {
  std::string file = folder + "/manifest" + std::to_string(node) + ".json";
  std::ofstream(file) << manifest;
  std::vector<std::string> all = {AUTOHET_FAKE_NODE, "manifest=" + file,
                                  "node=" + std::to_string(node)};
  all.insert(all.end(), arguments[node].begin(), arguments[node].end());
  std::vector<char *> argv;
  for (std::string &argument : all)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::string log = folder + "/log" + std::to_string(node);
  statuses[node] = -1;
  pids[node] = fork();
  if (pids[node] < 0)
    abort(); // tests send signals to this number, and -1 means everybody
  if (pids[node])
    return;
  int fd = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  dup2(fd, 1);
  dup2(fd, 2);
  for (auto &[name, value] : environments[node])
    setenv(name.c_str(), value.c_str(), 1);
  execv(argv[0], argv.data());
  _exit(127);
}

void TestJob::start() {
  for (uint32_t node = 0; node < ranks.size(); ++node)
    start(node);
}

std::vector<pid_t> TestJob::workers(uint32_t node) {
  std::string pid = std::to_string(pids[node]);
  for (double end = now() + 10; now() < end; usleep(2000)) {
    std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
    std::vector<pid_t> children((std::istream_iterator<pid_t>(file)),
                                std::istream_iterator<pid_t>());
    if (children.size() == ranks[node])
      return children;
  }
  return {};
}

void TestJob::sleepUntilRunning() {
  uint32_t worldSize = std::accumulate(ranks.begin(), ranks.end(), 0u);
  double end = now() + 30;
  for (uint32_t rank = 0; rank < worldSize; ++rank)
    while (access((folder + "/running-" + std::to_string(rank)).c_str(),
                  F_OK) != 0 &&
           now() < end)
      usleep(2000);
}

std::vector<int> TestJob::wait(double seconds) {
  auto isOut = [&](uint32_t node) {
    return pids[node] > 0 && statuses[node] < 0;
  };
  for (double end = now() + seconds; now() < end; usleep(5000)) {
    bool anyOut = false;
    for (uint32_t node = 0; node < pids.size(); ++node) {
      int status = 0;
      if (isOut(node) && waitpid(pids[node], &status, WNOHANG) == pids[node])
        statuses[node] =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      anyOut |= isOut(node);
    }
    if (!anyOut)
      break;
  }
  return statuses;
}

std::string TestJob::output(uint32_t node) const {
  return readFile(folder + "/log" + std::to_string(node));
}

std::string TestJob::saved(uint32_t rank) const {
  return readFile(folder + "/saved-" + std::to_string(rank));
}

std::vector<pid_t> TestJob::remaining() const {
  std::vector<pid_t> found;
  DIR *directory = opendir("/proc");
  while (dirent *entry = readdir(directory)) {
    pid_t pid = std::atoi(entry->d_name);
    std::string root = "/proc/" + std::to_string(pid);
    // A zombie has no command line.
    if (pid > 0 && pid != getpid() &&
        readFile(root + "/cmdline").find("manifest=" + folder) !=
            std::string::npos)
      found.push_back(pid);
  }
  closedir(directory);
  return found;
}
