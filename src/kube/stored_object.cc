#include "kube/stored_object.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/decode.h"

namespace volumed {
namespace {

constexpr const char* kReserved = "volumed";
constexpr const char* kNumber = "number";
constexpr const char* kFormat = "format";
constexpr const char* kWrittenBy = "writtenBy";
constexpr const char* kReplaces = "replaces";
// Of what stands in the reserved field, and of how the object is written. A program that does not
// know whom a pod replaces keeps the pod that is on record, with its uid: nothing is lost by it.
constexpr uint64_t kKnownFormat = 1;

// Nothing: it is no list of uids.
std::optional<std::set<PodUid>> ReadReplaced(const nlohmann::json& about) {
  std::set<PodUid> pods;
  const auto list = about.find(kReplaces);
  if (list == about.end()) return pods;
  if (!list->is_array()) return std::nullopt;
  for (const nlohmann::json& uid : *list) {
    if (!uid.is_string()) return std::nullopt;
    pods.emplace(uid.get<std::string>());
  }
  return pods;
}

}  // namespace

std::string EncodeStoredObject(const StoredObject& stored) {
  nlohmann::json about = {
      {kFormat, kKnownFormat}, {kNumber, stored.number}, {kWrittenBy, stored.written_by}};
  for (const PodUid& pod : stored.replaces) about[kReplaces].push_back(pod.str());
  std::string text = EncodeObjectJson(stored.object, SecretEncoding::kWithSecrets);
  // An object always has fields: kind and apiVersion.
  text.insert(1, "\"" + std::string(kReserved) + "\":" + about.dump() + ",");
  return text;
}

Result<StoredObject> DecodeStoredObject(std::string_view file, std::string_view bytes) {
  const auto damaged = [](const std::string& why) {
    return Error::NotApplied(Code::kDataLoss, why);
  };
  StoredObject stored;
  const nlohmann::json document =
      nlohmann::json::parse(bytes, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return damaged("is not a JSON object");
  if (const auto about = document.find(kReserved); about != document.end()) {
    if (!about->is_object()) return damaged("says nothing readable about itself");
    const auto number = [&about](const char* name) -> std::optional<uint64_t> {
      const auto found = about->find(name);
      if (found == about->end() || !found->is_number_unsigned()) return std::nullopt;
      return found->get<uint64_t>();
    };
    const std::optional<uint64_t> format = number(kFormat);
    const std::optional<uint64_t> given = number(kNumber);
    if (!format || !given) return damaged("does not say by which command it was given");
    if (*format > kKnownFormat) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "was written by a later program, in format " +
                                   std::to_string(*format) + "; this one knows up to " +
                                   std::to_string(kKnownFormat));
    }
    stored.number = *given;
    std::optional<std::set<PodUid>> replaces = ReadReplaced(*about);
    if (!replaces) return damaged("does not say which pods its pod replaces");
    stored.replaces = std::move(*replaces);
    if (const auto by = about->find(kWrittenBy); by != about->end() && by->is_string()) {
      stored.written_by = by->get<std::string>();
    }
  }
  ManifestDecode decoded = DecodeManifest(file, bytes, DecodeRules::kStored);
  if (!decoded.problems.empty()) {
    DecodeProblem& problem = decoded.problems.front();
    problem.file.clear();
    problem.document = -1;
    return damaged(problem.ToString());
  }
  if (decoded.objects.size() != 1) return damaged("does not hold exactly one object");
  stored.object = std::move(decoded.objects.front().object);
  return stored;
}

}  // namespace volumed
