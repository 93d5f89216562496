#include "plugins/flex_volume_status.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSuccess = "Success";
constexpr std::string_view kNotSupported = "Not supported";

Error Bad(const std::string& what) { return Error::NotApplied(Code::kInternal, what); }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Takes values of one object; null is as good as nothing. Remembers the first of a wrong type.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  void Take(const std::string& name, std::string& value) {
    if (const Json* found = Find(name, &Json::is_string, "text")) value = *found;
  }
  void Take(const std::string& name, bool& value) {
    if (const Json* found = Find(name, &Json::is_boolean, "true or false")) value = *found;
  }
  void Take(const std::string& name, int64_t& value) {
    const Json* const found = Find(name, &Json::is_number_integer, "an integer");
    if (found == nullptr) return;
    // The library would give what has no place in 64 bits with a sign as a negative number.
    if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX}) {
      if (!problem_) problem_ = "\"" + name + "\" is beyond 2^63-1";
      return;
    }
    value = *found;
  }
  const Json* Object(const std::string& name) { return Find(name, &Json::is_object, "an object"); }

  const std::optional<std::string>& problem() const { return problem_; }

 private:
  const Json* Find(const std::string& name, bool (Json::*is_type)() const noexcept,
                   const char* type) {
    for (const auto& [key, value] : object_.items()) {
      if (Lower(key) != Lower(name) || value.is_null()) continue;
      if ((value.*is_type)()) return &value;
      if (!problem_) problem_ = "\"" + name + "\" is not " + type;
    }
    return nullptr;
  }

  const Json& object_;
  std::optional<std::string> problem_;
};

}  // namespace

Result<FlexStatus> ParseFlexStatus(std::string_view output) {
  if (TrimSpace(output).empty()) return Bad("it printed nothing");
  const Json json = Json::parse(output, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Bad("what it printed (" + std::to_string(output.size()) + " bytes) is no JSON object");
  }
  FlexStatus status;
  Members members(json);
  members.Take("status", status.status);
  members.Take("message", status.message);
  members.Take("device", status.device);
  members.Take("volumeName", status.volume_name);
  members.Take("attached", status.attached);
  members.Take("volumeNewSize", status.new_size_bytes);
  std::optional<std::string> problem;
  if (const Json* object = members.Object("capabilities")) {
    Members capabilities(*object);
    capabilities.Take("attach", status.capabilities.attach);
    capabilities.Take("selinuxRelabel", status.capabilities.selinux_relabel);
    capabilities.Take("supportsMetrics", status.capabilities.supports_metrics);
    capabilities.Take("fsGroup", status.capabilities.fs_group);
    capabilities.Take("requiresFSResize", status.capabilities.requires_fs_resize);
    problem = capabilities.problem();
  }
  if (!problem) problem = members.problem();
  if (problem) return Bad("in the JSON that it printed, " + *problem);
  if (status.status == kSuccess) status.outcome = FlexOutcome::kSuccess;
  if (status.status == kNotSupported) status.outcome = FlexOutcome::kNotSupported;
  return status;
}

}  // namespace volumed
