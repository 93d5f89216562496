#include "kube/data_source.h"

#include <nlohmann/json.hpp>

namespace volumed {
namespace {

Error NoReference(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument,
                           "the claim's data source " + why + ", so it names nothing");
}

// A field that is absent or null is empty.
Result<std::string> FieldText(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return NoReference(std::string("has a ") + field + " that is no text");
  return found->get<std::string>();
}

}  // namespace

Result<std::optional<DataSource>> DataSourceOf(const PersistentVolumeClaimSpec& claim) {
  const std::string& text =
      claim.data_source_ref_json.empty() ? claim.data_source_json : claim.data_source_ref_json;
  if (text.empty() || text == "null") return std::optional<DataSource>();
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return NoReference("is no object");
  DataSource source;
  ASSIGN_OR_RETURN(source.api_group, FieldText(object, "apiGroup"));
  ASSIGN_OR_RETURN(source.kind, FieldText(object, "kind"));
  ASSIGN_OR_RETURN(source.name, FieldText(object, "name"));
  ASSIGN_OR_RETURN(source.name_space, FieldText(object, "namespace"));
  if (source.kind.empty() || source.name.empty()) return NoReference("lacks a kind or a name");
  return std::optional(std::move(source));
}

}  // namespace volumed
