#include "kube/manifest_watches.h"

#include <sys/inotify.h>

#include <string>
#include <utility>

namespace volumed {
namespace {

// One mask for directories whose entries count.
constexpr uint32_t kEntries = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                              IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr uint32_t kSelf = IN_DELETE_SELF | IN_MOVE_SELF;
// A link that another one replaces loses its last name, which is an IN_ATTRIB.
constexpr uint32_t kLink = kSelf | IN_ATTRIB;
// A directory that is missing is made, or moved to its place.
constexpr uint32_t kComing = kSelf | IN_CREATE | IN_MOVED_TO;

// Events that end or put in doubt what a watch stands for.
constexpr uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

// By descriptor, so that the watch is of the very inode that was looked at.
std::string PathOf(const OpenDirectory& directory) {
  return "/proc/self/fd/" + std::to_string(directory.fd.get());
}

}  // namespace

Result<ManifestWatches> ManifestWatches::Create() {
  ASSIGN_OR_RETURN(Inotify inotify, Inotify::Create());
  return ManifestWatches(std::move(inotify));
}

std::vector<ManifestEvent> ManifestWatches::Read() {
  std::vector<ManifestEvent> translated;
  const Result<std::vector<InotifyEvent>> events = inotify_.ReadEvents();
  if (!events.ok()) {
    // What it did not give is lost.
    error_ = "changes may go unseen: " + events.error().message();
    translated.push_back({ManifestEvent::What::kOverflow, 0, ""});
    return translated;
  }
  for (const InotifyEvent& event : *events) Translate(event, translated);
  return translated;
}

void ManifestWatches::Translate(const InotifyEvent& event, std::vector<ManifestEvent>& events) {
  using What = ManifestEvent::What;
  if (event.overflow) {
    events.push_back({What::kOverflow, 0, ""});
    return;
  }
  const auto found = watches_.find(event.wd);
  if (found == watches_.end()) return;  // of a watch that was given up
  const Watch& watch = found->second;
  const bool is_gone = (event.mask & kGone) != 0;
  if (watch.directory) {
    const bool of_itself = is_gone || (event.name.empty() && (event.mask & IN_ATTRIB) != 0);
    events.push_back({of_itself ? What::kWay : What::kEntry, event.mask, event.name});
  }
  if (watch.way) {
    const bool is_link_change = event.name.empty() && (event.mask & IN_ATTRIB) != 0;
    const bool has_come = !watch.child.empty() && event.name == watch.child;
    if (is_gone || is_link_change || has_come) events.push_back({What::kWay, 0, ""});
  }
  for (const auto& [name, files] : watch.files) {
    if (name != event.name && !is_gone) continue;
    for (const std::string& file : files) events.push_back({What::kTarget, event.mask, file});
  }
  if ((event.mask & IN_IGNORED) != 0) watches_.erase(found);
}

ManifestWatches::Added ManifestWatches::Add(const std::string& path, uint32_t mask, Of of) {
  const Result<int> wd = of == Of::kLink ? inotify_.AddLinkWatch(path, mask | IN_MASK_ADD)
                                         : inotify_.AddWatch(path, mask | IN_MASK_ADD);
  if (!wd.ok()) {
    error_ = "changes may go unseen: " + wd.error().message();
    return {};
  }
  Watch& watch = watches_[*wd];
  const bool is_new = (watch.mask & mask) != mask;
  watch.mask |= mask;
  return {*wd, &watch, is_new};
}

// Takes events away from a watch that serves the way alone.
void ManifestWatches::Narrow(const std::string& path, uint32_t mask) {
  const Result<int> wd = inotify_.AddWatch(path, mask);
  if (wd.ok()) watches_[*wd].mask = mask;
}

bool ManifestWatches::WatchAbove(const PathPoint& last, bool is_there) {
  const std::string path = PathOf(last.parent);
  const uint32_t mask = is_there ? kSelf : kComing;
  const auto [wd, watch, is_new] = Add(path, mask, Of::kDirectory);
  if (watch == nullptr) return false;
  watch->way = true;
  watch->child = is_there ? "" : last.name;
  const bool serves_more = watch->directory || !watch->files.empty();
  if (!serves_more && watch->mask != mask) Narrow(path, mask);
  return is_new && !is_there;
}

bool ManifestWatches::SetWay(const std::optional<OpenDirectory>& directory, const PathWalk& way) {
  error_.clear();
  for (auto& [wd, watch] : watches_) {
    watch.directory = watch.way = false;
    watch.child.clear();
  }
  bool look_again = false;
  for (const PathPoint& link : way.links) {
    const auto [wd, watch, is_new] = Add(PathOf(link.parent) + "/" + link.name, kLink, Of::kLink);
    if (watch == nullptr) continue;
    watch->way = true;
    look_again = look_again || is_new;
  }
  if (directory) {
    if (Watch* watch = Add(PathOf(*directory), kEntries, Of::kDirectory).watch) {
      watch->directory = true;
    }
  }
  if (way.last) look_again = WatchAbove(*way.last, directory.has_value()) || look_again;
  std::vector<int> all;
  for (const auto& [wd, watch] : watches_) all.push_back(wd);
  for (const int wd : all) DropUnused(wd);
  return look_again;
}

std::set<std::string> ManifestWatches::SetTargets(const std::vector<std::string>& files,
                                                  const std::vector<LinkTarget>& targets) {
  std::set<std::string> changed;
  std::set<int> left;  // watches that lead to fewer files than before
  std::map<std::string, std::set<std::pair<int, std::string>>> wanted;
  for (const LinkTarget& target : targets) {
    const Added added = Add(PathOf(target.point.parent), kEntries, Of::kDirectory);
    if (added.watch == nullptr) continue;
    std::set<std::string>& files_here = added.watch->files[target.point.name];
    if (files_here.insert(target.file).second || added.is_new) changed.insert(target.file);
    wanted[target.file].insert({added.wd, target.point.name});
  }
  for (const std::string& file : files) {
    for (const auto& [wd, name] : targets_of_[file]) {
      const auto watch = watches_.find(wd);
      if (watch == watches_.end() || wanted[file].count({wd, name}) > 0) continue;
      left.insert(wd);
      std::set<std::string>& led_to = watch->second.files[name];
      led_to.erase(file);
      if (led_to.empty()) watch->second.files.erase(name);
    }
    targets_of_[file] = wanted[file];
    if (targets_of_[file].empty()) targets_of_.erase(file);
  }
  for (const int wd : left) DropUnused(wd);
  return changed;
}

void ManifestWatches::DropUnused(int wd) {
  const auto watch = watches_.find(wd);
  if (watch == watches_.end() || watch->second.used()) return;
  // An IN_IGNORED of a watch that is not in the map any more is passed over.
  static_cast<void>(inotify_.RemoveWatch(wd).ok());
  watches_.erase(watch);
}

}  // namespace volumed
