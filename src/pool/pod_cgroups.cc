#include "pool/pod_cgroups.h"

#include <algorithm>
#include <cctype>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

using CgroupParts = std::vector<std::string>;

constexpr size_t kLongestUid = 128;  // 36 bytes, but for pods of a file, of which it is a hash

bool IsPodUid(const std::string& text) {
  return !text.empty() && text.size() <= kLongestUid &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

// "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice". A '-' of systemd's is a
// '/', so those of a name are '_'.
std::string SystemdPath(const CgroupParts& parts) {
  std::string path;
  std::string slice;
  for (std::string part : parts) {
    std::replace(part.begin(), part.end(), '-', '_');
    slice += (slice.empty() ? "" : "-") + part;
    path += (path.empty() ? "" : "/") + slice + ".slice";
  }
  return path;
}

}  // namespace

Result<std::vector<std::string>> PodCgroups(const std::string& pod_uid) {
  if (!IsPodUid(pod_uid)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             Quoted(pod_uid, kLongestUid) + " is no uid of a pod");
  }
  std::vector<std::string> names;
  for (const CgroupParts& root : {CgroupParts{"kubepods"}, CgroupParts{"kubelet", "kubepods"}}) {
    // A guaranteed pod is directly below the root of all.
    for (const CgroupParts& qos :
         {CgroupParts{}, CgroupParts{"burstable"}, CgroupParts{"besteffort"}}) {
      CgroupParts parts = root;
      parts.insert(parts.end(), qos.begin(), qos.end());
      parts.push_back("pod" + pod_uid);
      names.push_back(SystemdPath(parts));
      names.push_back(Join(parts, "/"));
    }
  }
  return names;
}

}  // namespace volumed
