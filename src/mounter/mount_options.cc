#include "mounter/mount_options.h"

#include <set>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kMountOptionAnnotation[] = "volume.beta.kubernetes.io/mount-options";

}  // namespace

std::vector<std::string> JoinMountOptions(const std::vector<std::string>& user_options,
                                          const std::vector<std::string>& system_options) {
  std::set<std::string> all(system_options.begin(), system_options.end());
  for (const std::string& option : user_options) {
    if (!option.empty()) all.insert(option);
  }
  return {all.begin(), all.end()};
}

std::vector<std::string> MountOptionFromSpec(const StringMap& annotations,
                                             const std::vector<std::string>& spec_options,
                                             const std::vector<std::string>& system_options) {
  const auto annotation = annotations.find(kMountOptionAnnotation);
  if (annotation != annotations.end()) {
    return JoinMountOptions(Split(annotation->second, ','), system_options);
  }
  if (!spec_options.empty()) return JoinMountOptions(spec_options, system_options);
  return system_options;
}

}  // namespace volumed
