#include "kube/selectors.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace volumed {
namespace {

// Null when there is no such label.
const std::string* ValueOf(const StringMap& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? nullptr : &found->second;
}

bool IsAmong(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool Holds(const LabelRequirement& requirement, const StringMap& labels) {
  const std::string* value = ValueOf(labels, requirement.key);
  switch (requirement.op) {
    case LabelOperator::kIn:
      return value != nullptr && IsAmong(requirement.values, *value);
    case LabelOperator::kNotIn:
      return value == nullptr || !IsAmong(requirement.values, *value);
    case LabelOperator::kExists:
      return value != nullptr;
    case LabelOperator::kDoesNotExist:
      return value == nullptr;
  }
  return false;
}

std::optional<int64_t> IntegerOf(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// False when either side is no integer.
template <typename Compare>
bool HoldsAsNumbers(const std::string* value, const NodeRequirement& requirement, Compare compare) {
  if (value == nullptr || requirement.values.size() != 1) return false;
  const std::optional<int64_t> left = IntegerOf(*value);
  const std::optional<int64_t> right = IntegerOf(requirement.values.front());
  return left && right && compare(*left, *right);
}

// `value` is null when the node has no such label or field.
bool Holds(const NodeRequirement& requirement, const std::string* value) {
  switch (requirement.op) {
    case NodeOperator::kIn:
      return value != nullptr && IsAmong(requirement.values, *value);
    case NodeOperator::kNotIn:
      return value == nullptr || !IsAmong(requirement.values, *value);
    case NodeOperator::kExists:
      return value != nullptr;
    case NodeOperator::kDoesNotExist:
      return value == nullptr;
    case NodeOperator::kGt:
      return HoldsAsNumbers(value, requirement, [](int64_t a, int64_t b) { return a > b; });
    case NodeOperator::kLt:
      return HoldsAsNumbers(value, requirement, [](int64_t a, int64_t b) { return a < b; });
  }
  return false;
}

bool Holds(const NodeSelectorTerm& term, const StringMap& labels, const std::string& node_name) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  const auto by_label = [&](const NodeRequirement& r) { return Holds(r, ValueOf(labels, r.key)); };
  const auto by_field = [&](const NodeRequirement& r) {
    return Holds(r, r.key == "metadata.name" ? &node_name : nullptr);
  };
  return std::all_of(term.match_expressions.begin(), term.match_expressions.end(), by_label) &&
         std::all_of(term.match_fields.begin(), term.match_fields.end(), by_field);
}

}  // namespace

bool Matches(const LabelSelector& selector, const StringMap& labels) {
  const auto has_label = [&](const auto& wanted) {
    const std::string* value = ValueOf(labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  };
  return std::all_of(selector.match_labels.begin(), selector.match_labels.end(), has_label) &&
         std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&](const LabelRequirement& r) { return Holds(r, labels); });
}

bool Matches(const NodeSelector& selector, const StringMap& node_labels,
             const std::string& node_name) {
  return std::any_of(
      selector.terms.begin(), selector.terms.end(),
      [&](const NodeSelectorTerm& term) { return Holds(term, node_labels, node_name); });
}

bool Matches(const std::vector<TopologyTerm>& allowed, const StringMap& node_labels) {
  const auto holds = [&node_labels](const TopologyRequirement& requirement) {
    const std::string* value = ValueOf(node_labels, requirement.key);
    return value != nullptr && IsAmong(requirement.values, *value);
  };
  return allowed.empty() ||
         std::any_of(allowed.begin(), allowed.end(), [&holds](const TopologyTerm& term) {
           const auto& all = term.match_label_expressions;
           return !all.empty() && std::all_of(all.begin(), all.end(), holds);
         });
}

}  // namespace volumed
