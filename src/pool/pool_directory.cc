#include "pool/pool_directory.h"

#include <cerrno>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

// As many as the kernel follows. Source: path_resolution(7).
constexpr int kMostLinks = 40;
constexpr int64_t kMarkerVersion = 1;

void PutInFront(const std::string& path, std::deque<std::string>& names) {
  const std::vector<std::string> parts = SplitNonEmpty(path, '/');
  names.insert(names.begin(), parts.begin(), parts.end());
}

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::string> FindPoolDirectory(Kernel& kernel, const std::string& path,
                                      const CallOptions& call) {
  if (path.empty() || path.front() != '/') {
    return Error::NotApplied(Code::kInvalidArgument, "the path of a pool is not absolute: " + path);
  }
  std::deque<std::string> names;
  PutInFront(path, names);
  std::string found = "/";
  int links = 0;
  while (!names.empty()) {
    const std::string name = names.front();
    names.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      found = Parent(found);
      continue;
    }
    const SafePath next{found, name, Resolve::kNoSymlinks};
    ASSIGN_OR_RETURN(const FileInfo info, kernel.Call(Stat{.path = next}, call));
    std::string there = (found == "/" ? "" : found) + "/" + name;
    if (info.type == FileType::kMissing) {
      return Error::FromErrno(ENOENT, "look for " + there, Outcome::kNotApplied);
    }
    if (info.type != FileType::kSymlink) {
      found = std::move(there);
      continue;
    }
    if (++links > kMostLinks) {
      return Error::FromErrno(ELOOP, "follow the links of " + path, Outcome::kNotApplied);
    }
    ASSIGN_OR_RETURN(const FileContent target, kernel.Call(ReadLink{next}, call));
    if (!target.bytes.empty() && target.bytes.front() == '/') found = "/";
    PutInFront(target.bytes, names);
  }
  return found;
}

std::string PoolMarkerText(const std::string& uuid) {
  const nlohmann::ordered_json json = {{"version", kMarkerVersion}, {"uuid", uuid}};
  return json.dump() + "\n";
}

Result<std::string> ParsePoolMarker(std::string_view text) {
  const Error unreadable = Error::NotApplied(
      Code::kDataLoss, "its marker is damaged, and does not say which pool it is");
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return unreadable;
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_integer()) return unreadable;
  if (*version != kMarkerVersion) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "its marker has version " + version->dump() + "; this program knows " +
                                 std::to_string(kMarkerVersion));
  }
  const auto uuid = json.find("uuid");
  if (uuid == json.end() || !uuid->is_string()) return unreadable;
  std::string found = uuid->get<std::string>();
  if (found.empty() || found.size() > 64) return unreadable;
  return found;
}

}  // namespace volumed
