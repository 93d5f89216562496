#include "os/mount_index.h"

#include <algorithm>
#include <limits>

namespace volumed {
namespace {

// Not a mount's: the kernel uses it for "all".
constexpr uint64_t kBeyondIds = std::numeric_limits<uint64_t>::max();

}  // namespace

bool IsAtOrBelow(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return true;
  return path.substr(0, ancestor.size()) == ancestor &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

void MountIndex::Put(uint64_t id, std::string mount_point) {
  Erase(id);
  const auto put = points_.emplace(id, std::move(mount_point)).first;
  sorted_.emplace(put->second, id);
}

bool MountIndex::Erase(uint64_t id) {
  const auto found = points_.find(id);
  if (found == points_.end()) return false;
  sorted_.erase({found->second, id});
  points_.erase(found);
  return true;
}

const std::string* MountIndex::Find(uint64_t id) const {
  const auto found = points_.find(id);
  return found == points_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> MountIndex::At(std::string_view mount_point) const {
  std::vector<uint64_t> ids;
  AppendRange({mount_point, 0}, {mount_point, kBeyondIds}, ids);
  return ids;
}

std::vector<uint64_t> MountIndex::Below(std::string_view path) const {
  if (path == "/") return Ids();
  std::vector<uint64_t> ids = At(path);
  // Not one range: "/a-b" sorts between "/a" and "/a/b". '0' is the character after '/'.
  const std::string first = std::string(path) + "/";
  const std::string last = std::string(path) + "0";
  AppendRange({first, 0}, {last, 0}, ids);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<uint64_t> MountIndex::Ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(points_.size());
  for (const auto& [id, point] : points_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void MountIndex::AppendRange(const Place& from, const Place& to, std::vector<uint64_t>& ids) const {
  const auto end = sorted_.lower_bound(to);
  for (auto place = sorted_.lower_bound(from); place != end; ++place) ids.push_back(place->second);
}

}  // namespace volumed
