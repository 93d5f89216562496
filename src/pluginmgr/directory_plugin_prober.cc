#include "pluginmgr/directory_plugin_prober.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kRootMask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr uint32_t kDriverMask = IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE |
                                 IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF;

bool IsHidden(const std::string& name) { return name.empty() || name[0] == '.'; }

// "driver" of "vendor~driver".
std::string DriverFile(const std::string& driver) {
  const size_t tilde = driver.rfind('~');
  return tilde == std::string::npos ? driver : driver.substr(tilde + 1);
}

void AddError(ProbeResult& result, const Error& error) {
  if (result.status.ok()) {
    result.status = error;
  } else {
    result.status = result.status.error().With(error.message());
  }
}

}  // namespace

DirectoryPluginProber::DirectoryPluginProber(std::string directory, Factory factory)
    : directory_(std::move(directory)), factory_(std::move(factory)) {}

std::string DirectoryPluginProber::ExecutableOf(const std::string& driver) const {
  return directory_ + "/" + driver + "/" + DriverFile(driver);
}

Status DirectoryPluginProber::Init() {
  ASSIGN_OR_RETURN(inotify_, Inotify::Create());
  return WatchRoot();
}

Status DirectoryPluginProber::WatchRoot() {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) {
    return Error::FromErrno(error.value(), "make " + directory_, Outcome::kNotApplied);
  }
  ASSIGN_OR_RETURN(root_watch_, inotify_->AddWatch(directory_, kRootMask));
  return OkStatus();
}

Result<DirectoryPluginProber::Changes> DirectoryPluginProber::ReadChanges() {
  ASSIGN_OR_RETURN(const std::vector<InotifyEvent> events, inotify_->ReadEvents());
  Changes changes;
  changes.all = std::exchange(probe_all_, false);
  bool root_gone = false;
  for (const InotifyEvent& event : events) {
    if (event.overflow) {
      changes.all = true;
    } else if (event.wd == root_watch_) {
      root_gone = root_gone || (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0;
      if (!IsHidden(event.name)) changes.drivers.insert(event.name);
    } else if (const auto watch = watched_.find(event.wd); watch != watched_.end()) {
      // Other files of a driver are its own business.
      if (event.name.empty() || event.name == DriverFile(watch->second)) {
        changes.drivers.insert(watch->second);
      }
      if ((event.mask & IN_IGNORED) != 0) watched_.erase(watch);
    }
  }
  if (root_gone) {
    probe_all_ = true;  // until it is watched again
    RETURN_IF_ERROR(WatchRoot());
    probe_all_ = false;
    changes.all = true;
  }
  return changes;
}

std::set<std::string> DirectoryPluginProber::AllDrivers() const {
  std::set<std::string> drivers = announced_;  // those that are gone have to be told, too
  std::error_code error;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (!IsHidden(name)) drivers.insert(name);
  }
  return drivers;
}

ProbeResult DirectoryPluginProber::Probe() {
  ProbeResult result;
  if (!inotify_) {
    result.status = Error::NotApplied(Code::kFailedPrecondition, "Probe comes after Init");
    return result;
  }
  Result<Changes> changes = ReadChanges();
  if (!changes.ok()) {
    result.status = changes.error();
    return result;
  }
  for (const std::string& driver : changes->all ? AllDrivers() : changes->drivers) {
    ProbeDriver(driver, result);
  }
  return result;
}

bool DirectoryPluginProber::IsInstalled(const std::string& driver) {
  // Watched before it is looked at: what appears in between is told.
  const Result<int> watch = inotify_->AddWatch(directory_ + "/" + driver, kDriverMask);
  if (!watch.ok()) return false;  // no directory (any more)
  watched_[*watch] = driver;
  const std::string executable = ExecutableOf(driver);
  std::error_code error;
  return fs::is_regular_file(executable, error) && ::access(executable.c_str(), X_OK) == 0;
}

void DirectoryPluginProber::ProbeDriver(const std::string& driver, ProbeResult& result) {
  ProbeEvent event;
  event.plugin_name = UnescapeQualifiedName(driver);
  if (!IsInstalled(driver)) {
    if (announced_.erase(driver) == 0) return;
    event.op = ProbeOperation::kRemove;
    result.events.push_back(std::move(event));
    return;
  }
  Result<std::unique_ptr<VolumePlugin>> plugin =
      factory_(event.plugin_name, ExecutableOf(driver));
  if (!plugin.ok()) {
    AddError(result, plugin.error().With("driver " + event.plugin_name));
    return;
  }
  event.plugin = std::move(plugin).value();
  announced_.insert(driver);
  result.events.push_back(std::move(event));
}

}  // namespace volumed
