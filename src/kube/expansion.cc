#include "kube/expansion.h"

#include <map>
#include <utility>

#include "kube/field_path.h"
#include "kube/field_rules.h"

namespace volumed {
namespace {

Error Invalid(std::string message) {
  return Error::NotApplied(Code::kInvalidArgument, std::move(message));
}

// The variables of one container in the order of their definition; a later one may use the earlier.
class Environment {
 public:
  Environment(const Pod& pod, const Container& container, const ConfigMapLookup& find_config_map,
              const ResourceList& node_allocatable)
      : pod_(pod),
        container_(container),
        find_config_map_(find_config_map),
        node_allocatable_(node_allocatable) {
    for (const EnvVar& variable : container.env) {
      values_.insert_or_assign(variable.name, Evaluate(variable));
    }
  }

  // Null when there is no such variable; an error in it is of interest only to who uses it.
  const Result<std::string>* Find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  Result<std::string> Evaluate(const EnvVar& variable) const {
    if (!variable.value_from) return EvaluateText(variable.value);
    const EnvVarSource& from = *variable.value_from;
    if (from.field_ref) return PodFieldValue(pod_, from.field_ref->field_path);
    if (from.resource_field_ref) {
      return ResourceFieldValue(pod_, *from.resource_field_ref, node_allocatable_, container_.name);
    }
    if (from.config_map_key_ref) return EvaluateKey(*from.config_map_key_ref);
    if (from.secret_key_ref) return Invalid("comes from a secret and must not be part of a path");
    return Invalid("has a source that is not supported in a path");
  }

  // A secret that an earlier variable carries stays out of a path this way round, too.
  Result<std::string> EvaluateText(const std::string& text) const {
    std::optional<Error> error;
    std::string value = ExpandVariables(text, [&](std::string_view name) {
      const Result<std::string>* earlier = Find(name);
      if (earlier == nullptr) return std::optional<std::string>();
      if (!earlier->ok()) {
        error = earlier->error().With("uses $(" + std::string(name) + ")");
        return std::optional<std::string>();
      }
      return std::optional<std::string>(**earlier);
    });
    if (error) return *error;
    return value;
  }

  Result<std::string> EvaluateKey(const ConfigMapKeySelector& selector) const {
    const auto config_map = find_config_map_(pod_.metadata.name_space, selector.name);
    if (config_map != nullptr) {
      const auto found = config_map->data.find(selector.key);
      if (found != config_map->data.end()) return found->second;
    }
    return Invalid("needs key " + Quoted(selector.key) + " of config map " + Quoted(selector.name) +
                   ", which is not there");
  }

  const Pod& pod_;
  const Container& container_;
  const ConfigMapLookup& find_config_map_;
  const ResourceList& node_allocatable_;
  std::map<std::string, Result<std::string>, std::less<>> values_;
};

}  // namespace

std::string ExpandVariables(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of) {
  std::string expanded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || at + 1 == text.size()) {
      expanded += text[at];
      continue;
    }
    ++at;
    const size_t close = text[at] == '(' ? text.find(')', at) : std::string_view::npos;
    if (text[at] == '$') {
      expanded += '$';
    } else if (close == std::string_view::npos) {
      expanded += '$';
      expanded += text[at];
    } else {
      const std::string_view name = text.substr(at + 1, close - at - 1);
      const std::optional<std::string> value = value_of(name);
      expanded += value ? *value : "$(" + std::string(name) + ")";
      at = close;
    }
  }
  return expanded;
}

Result<std::string> ExpandSubPathExpr(const Pod& pod, const Container& container,
                                      std::string_view expression,
                                      const ConfigMapLookup& find_config_map,
                                      const ResourceList& node_allocatable) {
  const Environment environment(pod, container, find_config_map, node_allocatable);
  std::optional<Error> error;
  const std::string path =
      ExpandVariables(expression, [&](std::string_view name) -> std::optional<std::string> {
        const Result<std::string>* value = environment.Find(name);
        if (value != nullptr && value->ok()) return **value;
        if (!error) {
          const std::string what = "subPathExpr: variable " + Quoted(name);
          error = value == nullptr ? Invalid(what + " is not set in the container")
                                   : value->error().With(what);
        }
        return std::nullopt;
      });
  if (error) return *error;
  if (const auto reason = rules::kSubPath.broken(path)) return Invalid("subPathExpr: " + *reason);
  return path;
}

}  // namespace volumed
