#include "csi/registry_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"
#include "base/directories.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

// One mask for all: a directory may serve several purposes.
constexpr uint32_t kMask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
// Events that end what a watch stands for.
constexpr uint32_t kOver = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;
constexpr mode_t kDirectoryMode = 0750;  // kubelet's
constexpr mode_t kParentMode = 0755;

bool IsHiddenName(const std::string& name) { return name.empty() || name[0] == '.'; }

std::string Below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

bool LiesBelow(const std::string& folder, const std::string& name) {
  return folder.empty() || name.starts_with(folder + "/");
}

size_t DepthOf(const std::string& folder) {
  return folder.empty() ? 0 : 1 + std::count(folder.begin(), folder.end(), '/');
}

// The names in a directory that is open with O_PATH.
Result<std::vector<std::string>> NamesIn(int directory, const std::string& shown) {
  ASSIGN_OR_RETURN(Descriptor readable, DescriptorFrom(::open(ProcFdPath(directory).c_str(),
                                                              O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                                       "read " + shown));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(readable.get()), ::closedir);
  if (stream == nullptr) return Error::FromErrno(errno, "read " + shown, Outcome::kNotApplied);
  static_cast<void>(readable.Release());  // the stream has it now
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) return Error::FromErrno(errno, "read " + shown, Outcome::kNotApplied);
  return names;
}

// The trusted root may be a mount point; below it there may be none.
Result<Descriptor> OpenFolder(const SafePath& place) {
  return OpenSafePath(place, O_PATH | O_DIRECTORY, place.relative.empty() ? 0 : RESOLVE_NO_XDEV);
}

// The nearest directory that exists on the way to the place, open with O_PATH, and the name in it
// by which the way goes on.
struct WayPoint {
  Descriptor directory;
  std::string name;
};
Result<WayPoint> NearestDirectory(const SafePath& place, TrustedRoots& roots) {
  ASSIGN_OR_RETURN(const SafePath real, roots.Real(place));
  std::string folder = real.relative;
  for (;;) {
    const size_t slash = folder.rfind('/');
    const std::string name = slash == std::string::npos ? folder : folder.substr(slash + 1);
    folder = slash == std::string::npos ? "" : folder.substr(0, slash);
    Result<Descriptor> opened = OpenFolder({real.root, folder});
    if (opened.ok()) return WayPoint{*std::move(opened), name};
    if (folder.empty()) return opened.error();
  }
}

}  // namespace

Result<std::unique_ptr<InotifyRegistryWatch>> InotifyRegistryWatch::Create(
    std::string directory, Limits limits, std::shared_ptr<TrustedRoots> roots) {
  ASSIGN_OR_RETURN(Inotify inotify, Inotify::Create());
  return std::unique_ptr<InotifyRegistryWatch>(
      new InotifyRegistryWatch(std::move(inotify), std::move(directory), limits, std::move(roots)));
}

RegistryLook InotifyRegistryWatch::Look(const std::vector<SafePath>& endpoints) {
  RegistryLook look;
  const Result<std::vector<InotifyEvent>> events = inotify_.ReadEvents();
  if (events.ok()) {
    for (const InotifyEvent& event : *events) Translate(event);
  } else {
    look.error = events.error();
    scan_all_ = true;
    for (const auto& [display, endpoint] : endpoints_) EndpointChanged(display);
  }
  if (scan_all_) {
    if (const Status scanned = ScanAll(); !scanned.ok()) error_ = scanned.error();
  }
  if (error_) look.error = std::exchange(error_, std::nullopt);
  SetEndpoints(endpoints);
  look.changes = std::exchange(changes_, {});
  return look;
}

void InotifyRegistryWatch::Tell(RegistryChange::What what, const std::string& name) {
  changes_.push_back({what, name});
}

void InotifyRegistryWatch::Translate(const InotifyEvent& event) {
  if (event.overflow) {
    scan_all_ = true;
    for (const auto& [display, endpoint] : endpoints_) EndpointChanged(display);
    return;
  }
  const auto found = watches_.find(event.wd);
  if (found == watches_.end()) return;  // of a watch that was given up
  if ((event.mask & kOver) != 0) return WatchIsOver(event.wd, (event.mask & IN_IGNORED) != 0);
  if (const auto awaited = found->second.awaited.find(event.name);
      awaited != found->second.awaited.end()) {
    for (const std::string& display : awaited->second) EndpointChanged(display);
  }
  // It is copied, for the watch may go.
  if (const std::optional<std::string> folder = found->second.folder) {
    TranslateEntry(*folder, event);
  }
}

void InotifyRegistryWatch::TranslateEntry(const std::string& folder, const InotifyEvent& event) {
  if (IsHiddenName(event.name)) return;
  const std::string name = Below(folder, event.name);
  const bool is_folder = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
    is_folder ? FolderWent(name) : Went(name);
  } else if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
    Came(name);
  } else if ((event.mask & IN_ATTRIB) != 0 && known_.count(name) > 0) {
    Tell(RegistryChange::What::kChanged, name);
  }
}

void InotifyRegistryWatch::WatchIsOver(int wd, bool is_ignored) {
  Watch& watch = watches_[wd];
  for (const auto& [name, displays] : watch.awaited) {
    for (const std::string& display : displays) EndpointChanged(display);
  }
  const std::optional<std::string> folder = std::exchange(watch.folder, std::nullopt);
  if (is_ignored) {
    for (auto& [display, endpoint] : endpoints_) {
      if (endpoint.wd == wd) endpoint.wd = -1;
    }
    watches_.erase(wd);
  }
  if (folder) {
    folders_.erase(*folder);
    FolderWent(*folder);
    // It is made again, and looked for in its place.
    if (folder->empty()) scan_all_ = true;
  }
  DropIfUnused(wd);
}

void InotifyRegistryWatch::Came(const std::string& name) {
  const Found found = LookAt(name);
  // A look may be ahead of the events: this one may be of what was found already.
  if (found.entry == Entry::kFolder) {
    const auto folder = folders_.find(name);
    if (folder != folders_.end() && folder->second.identity == found.identity) return;
    return ScanFolder(name);
  }
  const auto known = known_.find(name);
  if (known != known_.end() && found.entry == Entry::kSocket && known->second == found.identity) {
    return;
  }
  Went(name);
  if (found.entry != Entry::kSocket) return;
  known_.emplace(name, found.identity);
  Tell(RegistryChange::What::kCame, name);
}

void InotifyRegistryWatch::Went(const std::string& name) {
  if (known_.erase(name) > 0) Tell(RegistryChange::What::kWent, name);
}

void InotifyRegistryWatch::FolderWent(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& [name, identity] : known_) {
    if (LiesBelow(folder, name)) names.push_back(name);
  }
  for (const std::string& name : names) Went(name);
  std::vector<int> watches;
  for (auto at = folders_.begin(); at != folders_.end();) {
    const bool goes = at->first == folder || LiesBelow(folder, at->first);
    if (goes) watches.push_back(at->second.wd);
    at = goes ? folders_.erase(at) : std::next(at);
  }
  for (const int wd : watches) {
    watches_[wd].folder.reset();
    DropIfUnused(wd);
  }
}

InotifyRegistryWatch::Found InotifyRegistryWatch::LookAt(const std::string& name) const {
  // With O_NOFOLLOW a link is opened itself.
  const Result<Descriptor> opened =
      OpenSafePath(PlaceOf(name), O_PATH | O_NOFOLLOW, RESOLVE_NO_XDEV);
  struct stat status {};
  if (!opened.ok() || ::fstat(opened->get(), &status) != 0) return {};
  const SocketIdentity identity{status.st_dev, status.st_ino};
  if (S_ISDIR(status.st_mode)) return {Entry::kFolder, identity};
  if (S_ISSOCK(status.st_mode) || S_ISLNK(status.st_mode)) return {Entry::kSocket, identity};
  return {};
}

void InotifyRegistryWatch::ScanFolder(const std::string& folder) {
  FolderWent(folder);
  const Status scanned = Scan(folder);
  if (scanned.ok()) return;
  switch (scanned.error().sys_errno()) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
      return;  // it is gone, or no folder of this directory
    default:
      error_ = scanned.error();
      scan_all_ = true;
  }
}

Status InotifyRegistryWatch::Scan(const std::string& folder) {
  if (folders_.size() >= limits_.folders || DepthOf(folder) > limits_.depth) {
    return Error::NotApplied(Code::kResourceExhausted,
                             "there are too many folders in " + directory_ + ", or too deep ones");
  }
  ASSIGN_OR_RETURN(const Descriptor directory, OpenFolder(PlaceOf(folder)));
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) {
    return Error::FromErrno(errno, "look at " + PlaceOf(folder).Display(), Outcome::kNotApplied);
  }
  // Watched before it is read: what comes in between is told.
  ASSIGN_OR_RETURN(const int wd, AddWatch(directory.get()));
  watches_[wd].folder = folder;
  folders_[folder] = {wd, {status.st_dev, status.st_ino}};
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   NamesIn(directory.get(), PlaceOf(folder).Display()));
  for (const std::string& name : names) {
    if (!IsHiddenName(name)) Came(Below(folder, name));
  }
  return OkStatus();
}

Status InotifyRegistryWatch::OpenDirectory() {
  RETURN_IF_ERROR(MakeDirectories(directory_, kParentMode, kDirectoryMode));
  ASSIGN_OR_RETURN(const SafePath real, roots_->Real({directory_, ""}));
  real_directory_ = real.root;
  return OkStatus();
}

Status InotifyRegistryWatch::ScanAll() {
  const std::map<std::string, SocketIdentity> before = std::exchange(known_, {});
  std::vector<RegistryChange> until_now = std::exchange(changes_, {});
  FolderWent("");
  scan_all_ = false;
  Status scanned = OpenDirectory();
  if (scanned.ok()) scanned = Scan("");
  if (!scanned.ok()) scan_all_ = true;
  // What the scan has told came from nothing; it is held against what was known.
  changes_ = std::move(until_now);
  for (const auto& [name, identity] : before) {
    const auto now = known_.find(name);
    if (now != known_.end() && now->second == identity) {
      Tell(RegistryChange::What::kChanged, name);
    } else {
      Tell(RegistryChange::What::kWent, name);
    }
  }
  for (const auto& [name, identity] : known_) {
    const auto was = before.find(name);
    if (was == before.end() || was->second != identity) Tell(RegistryChange::What::kCame, name);
  }
  return scanned;
}

void InotifyRegistryWatch::SetEndpoints(const std::vector<SafePath>& endpoints) {
  std::set<std::string> wanted;
  for (const SafePath& place : endpoints) {
    const std::string display = place.Display();
    wanted.insert(display);
    Endpoint& endpoint = endpoints_[display];
    endpoint.place = place;
  }
  for (auto at = endpoints_.begin(); at != endpoints_.end();) {
    const bool stays = wanted.count(at->first) > 0;
    if (!stays) Disarm(at->first, at->second);
    at = stays ? std::next(at) : endpoints_.erase(at);
  }
  for (auto& [display, endpoint] : endpoints_) {
    if (std::exchange(endpoint.arm, false)) Arm(display, endpoint);
  }
}

void InotifyRegistryWatch::Arm(const std::string& display, Endpoint& endpoint) {
  Disarm(display, endpoint);
  Tell(RegistryChange::What::kEndpoint, display);
  for (;;) {
    const Result<WayPoint> point = NearestDirectory(endpoint.place, *roots_);
    if (!point.ok()) return;  // whoever dials says why
    const Result<int> wd = AddWatch(point->directory.get());
    if (!wd.ok()) return;
    // What was made between the look and the watch would be missed.
    const bool is_settled = endpoint.wd == *wd && endpoint.name == point->name;
    if (is_settled) return;
    Disarm(display, endpoint);
    endpoint.wd = *wd;
    endpoint.name = point->name;
    watches_[*wd].awaited[endpoint.name].insert(display);
  }
}

void InotifyRegistryWatch::Disarm(const std::string& display, Endpoint& endpoint) {
  const int wd = std::exchange(endpoint.wd, -1);
  const auto watch = watches_.find(wd);
  if (watch == watches_.end()) return;
  const auto awaited = watch->second.awaited.find(endpoint.name);
  if (awaited == watch->second.awaited.end()) return;
  awaited->second.erase(display);
  if (awaited->second.empty()) watch->second.awaited.erase(awaited);
  DropIfUnused(wd);
}

void InotifyRegistryWatch::EndpointChanged(const std::string& display) {
  if (const auto found = endpoints_.find(display); found != endpoints_.end()) {
    found->second.arm = true;
  }
}

// By descriptor, so that the watch is of the very directory that was looked at.
Result<int> InotifyRegistryWatch::AddWatch(int directory) {
  ASSIGN_OR_RETURN(const int wd, inotify_.AddWatch(ProcFdPath(directory), kMask));
  watches_.try_emplace(wd);
  return wd;
}

void InotifyRegistryWatch::DropIfUnused(int wd) {
  const auto watch = watches_.find(wd);
  if (watch == watches_.end() || watch->second.used()) return;
  // An event of a watch that is not in the map any more is passed over.
  static_cast<void>(inotify_.RemoveWatch(wd).ok());
  watches_.erase(watch);
}

}  // namespace volumed
