#include "csidriver/node_targets.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "operation/given_place.h"

namespace volumed {
namespace {

// Whether `path` is the directory or lies in it.
bool LiesIn(std::string_view path, std::string_view directory) {
  const std::optional<std::string_view> rest = StripPrefix(path, directory);
  return rest && (rest->empty() || rest->front() == '/');
}

Error Refused(std::string_view field, const std::string& path, const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument,
                           std::string(field) + " " + ShownPath(path) + " " + why);
}

}  // namespace

std::string ShownPath(const std::string& path) {
  constexpr size_t kMostBytes = 512;
  return Quoted(path, kMostBytes);
}

std::optional<std::string> CleanNodePath(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return std::nullopt;
  std::string clean;
  for (const std::string& name : SplitNonEmpty(path, '/')) {
    if (name == "." || name == "..") return std::nullopt;
    clean += "/" + name;
  }
  if (clean.empty()) return std::nullopt;
  return clean;
}

NodeTargets::NodeTargets(std::vector<std::string> roots, RealRoot real)
    : roots_(std::move(roots)), real_(std::move(real)) {}

// The deepest root is the one that an administrator knows most about.
std::vector<NodeTargets::Way> NodeTargets::Ways() const {
  std::vector<Way> ways;
  for (const std::string& root : roots_) {
    std::string real = real_ ? real_(root) : root;
    if (real.empty() || real == "/") real = root;
    if (real != root) ways.push_back({real, real});
    ways.push_back({root, std::move(real)});
  }
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return a.path.size() != b.path.size() ? a.path.size() > b.path.size() : a.path < b.path;
  });
  return ways;
}

std::string NodeTargets::RealPath(const std::string& clean) const {
  for (const Way& way : Ways()) {
    if (LiesIn(clean, way.path)) return way.real + clean.substr(way.path.size());
  }
  return clean;
}

Result<SafePath> NodeTargets::PlaceOf(std::string_view field, const std::string& path) const {
  const std::optional<std::string> clean = CleanNodePath(path);
  if (!clean) {
    return Refused(field, path,
                   "is no path of a place: it has to be absolute, without \".\" and \"..\"");
  }
  const std::vector<Way> ways = Ways();
  for (const Way& way : ways) {
    if (LiesIn(way.path, *clean)) {
      return Refused(field, path, "is, or has in it, " + way.path + ", which is for many volumes");
    }
  }
  for (const Way& way : ways) {
    if (!LiesIn(*clean, way.path)) continue;
    return SafePath{way.real, clean->substr(way.path.size() + 1), Resolve::kNoSymlinks};
  }
  return Refused(field, path,
                 "lies in none of the directories in which this driver puts volumes "
                 "(csi-target-roots: " +
                     Join(roots_, ", ") + ")");
}

std::optional<NodePlace> NodePlaceOf(const DeviceRecord& staged) {
  const std::optional<SafePath> place = GivenPlaceOf(staged);
  if (!place || IsGone(staged)) return std::nullopt;
  return NodePlace{.place = *place,
                   .is_staging = true,
                   .is_block = staged.is_block,
                   .is_finished = HasDeviceSetUp(staged),
                   .fault_domain = staged.fault_domain};
}

std::optional<NodePlace> NodePlaceOf(const PodVolumeRecord& published) {
  const std::optional<SafePath> place = GivenPlaceOf(published);
  const bool is_gone = published.state == VolumeState::kNotSetUp && !published.uncertain;
  if (!place || is_gone) return std::nullopt;
  const VolumeState there = published.is_block ? VolumeState::kMapped : VolumeState::kSetUp;
  return NodePlace{.place = *place,
                   .is_block = published.is_block,
                   .is_finished = published.state == there && !published.uncertain,
                   .fault_domain = published.fault_domain};
}

std::optional<NodePlace> BoundDevicePlace(const DeviceRecord& staged, SafePath place) {
  std::optional<NodePlace> bound = NodePlaceOf(staged);
  const bool is_known = bound && bound->is_finished && bound->is_block && staged.mapped &&
                        staged.mapped->boot_id == staged.boot_id;
  if (!is_known) return std::nullopt;
  const DeviceIdentity& device = staged.mapped->device;
  bound->place = std::move(place);
  bound->is_staging = false;
  bound->device_number = ::makedev(device.device_major, device.device_minor);
  return bound;
}

std::optional<NodePlace> FindNodePlace(const std::string& path,
                                       const std::optional<DeviceRecord>& staged,
                                       const std::optional<PodVolumeRecord>& published) {
  if (published) {
    const std::optional<NodePlace> target = NodePlaceOf(*published);
    if (target && target->place.Display() == path) return target;
  }
  if (!staged) return std::nullopt;
  std::optional<NodePlace> staging = NodePlaceOf(*staged);
  if (staging && staging->place.Display() == path) return staging;
  return std::nullopt;
}

}  // namespace volumed
