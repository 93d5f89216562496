#include "pluginmgr/driver_directory.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/directories.h"
#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kRootMask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr uint32_t kDriverMask = IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE |
                                 IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF;

constexpr mode_t kDirectoryMode = 0755;

bool IsHidden(const std::string& name) { return name.empty() || name[0] == '.'; }

// "driver" of "vendor~driver".
std::string DriverFile(const std::string& driver) {
  const size_t tilde = driver.rfind('~');
  return tilde == std::string::npos ? driver : driver.substr(tilde + 1);
}

std::string PathOf(const std::string& directory, const std::string& driver) {
  return directory + "/" + driver + "/" + DriverFile(driver);
}

}  // namespace

std::string DriverExecutable(const std::string& directory, const std::string& plugin_name) {
  return PathOf(directory, EscapeQualifiedName(plugin_name));
}

Status DriverDirectory::Init() {
  ASSIGN_OR_RETURN(inotify_, Inotify::Create());
  return WatchRoot();
}

Status DriverDirectory::WatchRoot() {
  RETURN_IF_ERROR(MakeDirectories(directory_, kDirectoryMode, kDirectoryMode));
  ASSIGN_OR_RETURN(root_watch_, inotify_->AddWatch(directory_, kRootMask));
  return OkStatus();
}

Result<DriverDirectory::Changes> DriverDirectory::ReadChanges() {
  ASSIGN_OR_RETURN(const std::vector<InotifyEvent> events, inotify_->ReadEvents());
  Changes changes;
  changes.all = std::exchange(look_at_all_, false);
  // One that could not be watched again is tried each time.
  bool root_gone = root_watch_ < 0;
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
    root_watch_ = -1;
    RETURN_IF_ERROR(WatchRoot());
    changes.all = true;
  }
  return changes;
}

std::set<std::string> DriverDirectory::AllDrivers() const {
  std::set<std::string> drivers = told_;  // those that are gone have to be told, too
  std::error_code error;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (!IsHidden(name)) drivers.insert(name);
  }
  return drivers;
}

Result<std::vector<DriverChange>> DriverDirectory::TakeChanges() {
  if (!inotify_) {
    return Error::NotApplied(Code::kFailedPrecondition, "drivers are looked for after Init");
  }
  ASSIGN_OR_RETURN(const Changes changes, ReadChanges());
  std::vector<DriverChange> result;
  for (const std::string& driver : changes.all ? AllDrivers() : changes.drivers) {
    const bool installed = IsInstalled(driver);
    if (installed) told_.insert(driver);
    if (!installed && told_.erase(driver) == 0) continue;
    result.push_back({UnescapeQualifiedName(driver), PathOf(directory_, driver), installed});
  }
  return result;
}

bool DriverDirectory::IsInstalled(const std::string& driver) {
  // Watched before it is looked at: what appears in between is told.
  const Result<int> watch = inotify_->AddWatch(directory_ + "/" + driver, kDriverMask);
  if (!watch.ok()) return false;  // no directory (any more)
  watched_[*watch] = driver;
  const std::string executable = PathOf(directory_, driver);
  std::error_code error;
  return fs::is_regular_file(executable, error) && ::access(executable.c_str(), X_OK) == 0;
}

}  // namespace volumed
