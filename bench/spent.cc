#include "bench/spent.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace volumed {
namespace {

double Millis(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1000 + static_cast<double>(time.tv_usec) / 1000;
}

double Millis(const rusage& usage) { return Millis(usage.ru_utime) + Millis(usage.ru_stime); }

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  double ms = 0;  // its own, and of those that it has waited for
};

// Source: proc_pid_stat(5): after the name, which may hold anything, state ppid, ..., utime stime
// cutime cstime as fields 14 to 17; proc_pid_schedstat(5): nanoseconds on the processor.
bool ReadProcess(const std::string& pid, Process* process) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return false;
  process->pid = static_cast<pid_t>(std::stol(pid));
  process->name = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  constexpr size_t kParent = 1;
  constexpr size_t kChildUser = 13;
  constexpr size_t kChildSystem = 14;
  if (fields.size() <= kChildSystem) return false;
  process->parent = static_cast<pid_t>(std::stol(fields[kParent]));
  const double ticks = std::stod(fields[kChildUser]) + std::stod(fields[kChildSystem]);
  process->ms = ticks * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  double nanoseconds = 0;
  if (std::ifstream("/proc/" + pid + "/schedstat") >> nanoseconds) process->ms += nanoseconds / 1e6;
  return true;
}

std::multimap<pid_t, Process> ProcessesByParent() {
  std::multimap<pid_t, Process> processes;
  DIR* const directory = ::opendir("/proc");
  if (directory == nullptr) return processes;
  while (const dirent* entry = ::readdir(directory)) {
    Process process;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (ReadProcess(entry->d_name, &process)) processes.emplace(process.parent, process);
  }
  ::closedir(directory);
  return processes;
}

double Tree(const std::multimap<pid_t, Process>& processes, const Process& root) {
  double ms = root.ms;
  const auto [first, last] = processes.equal_range(root.pid);
  for (auto child = first; child != last; ++child) ms += Tree(processes, child->second);
  return ms;
}

}  // namespace

Spent operator-(const Spent& after, const Spent& before) {
  return {after.agent_ms - before.agent_ms, after.workers_ms - before.workers_ms,
          after.udevd_ms - before.udevd_ms, after.switches - before.switches};
}

Spent SpentUntilNow() {
  rusage self = {};
  rusage children = {};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  Spent spent;
  spent.agent_ms = Millis(self);
  spent.workers_ms = Millis(children);
  spent.switches = static_cast<uint64_t>(self.ru_nvcsw + self.ru_nivcsw);
  const std::multimap<pid_t, Process> processes = ProcessesByParent();
  const auto [first, last] = processes.equal_range(::getpid());
  for (auto child = first; child != last; ++child) {
    const bool is_udevd = child->second.name.rfind("systemd-udevd", 0) == 0;
    (is_udevd ? spent.udevd_ms : spent.workers_ms) += Tree(processes, child->second);
  }
  return spent;
}

}  // namespace volumed
