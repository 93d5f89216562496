#include "kube/manifest_way.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/strings.h"

namespace volumed {
namespace {

// "" for one that cannot be told.
std::string PlaceOf(const OpenDirectory& directory) {
  const std::string link = "/proc/self/fd/" + std::to_string(directory.fd.get());
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  return size <= 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
}

std::string PlaceOf(const PathPoint& point) {
  const std::string parent = PlaceOf(point.parent);
  return (parent == "/" ? "" : parent) + "/" + point.name;
}

bool LiesIn(const std::string& place, const std::string& directory) {
  if (directory == "/") return true;
  const auto rest = StripPrefix(place, directory);
  return rest && (rest->empty() || rest->front() == '/');
}

}  // namespace

std::vector<std::string> PlacesOnWay(const std::string& directory,
                                     const std::optional<OpenDirectory>& opened,
                                     const PathWalk& way) {
  std::vector<std::string> places = {directory};
  for (const PathPoint& link : way.links) places.push_back(PlaceOf(link));
  if (way.last) places.push_back(PlaceOf(*way.last));
  if (opened) places.push_back(PlaceOf(*opened));
  return places;
}

bool ChangesWay(const std::vector<std::string>& mount_points,
                const std::vector<std::string>& places) {
  return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
    return std::any_of(mount_points.begin(), mount_points.end(),
                       [&](const std::string& mount) { return LiesIn(place, mount); });
  });
}

}  // namespace volumed
