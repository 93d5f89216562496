#include "agent/page_token.h"

#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kPods = "pods";
constexpr size_t kParts = 4;

Error NoPage(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument,
                           "the page is not the next_page of a list of pods: " + why);
}

}  // namespace

// Names of namespaces and pods contain no slash, nor do the names of directories.
std::string PodPageToken(const PodName& last) {
  return std::string(kPods) + "/" + last.ns + "/" + last.name + "/" + last.uid.str();
}

Result<PodName> ParsePodPageToken(std::string_view token) {
  if (token.size() > kMaxPageToken) {
    return NoPage("it has " + std::to_string(token.size()) + " bytes, and at most " +
                  std::to_string(kMaxPageToken) + " are allowed");
  }
  const std::vector<std::string> parts = Split(token, '/');
  if (parts.front() != kPods) return NoPage("it is of another list");
  if (parts.size() != kParts) return NoPage("it is not pods/NAMESPACE/NAME/UID");
  if (parts.back().empty()) return NoPage("it has no uid");
  return PodName{parts[1], parts[2], PodUid(parts[3])};
}

}  // namespace volumed
