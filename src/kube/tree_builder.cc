#include "kube/tree_builder.h"

#include <utility>

#include "kube/decode.h"
#include "kube/field_rules.h"

namespace volumed {
namespace {

// Text of one document after its aliases are expanded: more than a file can hold, less than what
// hurts a node.
constexpr size_t kMaxExpandedBytes = 4 * kMaxManifestBytes;

}  // namespace

bool TreeBuilder::Fail(std::string reason) {
  if (error_.empty()) error_ = std::move(reason);
  return false;
}

bool TreeBuilder::Grow(Size by) {
  size_.nodes += by.nodes;
  size_.bytes += by.bytes;
  if (size_.nodes > kMaxManifestNodes) {
    return Fail("holds more than " + std::to_string(kMaxManifestNodes) +
                " values after its aliases are expanded");
  }
  if (size_.bytes > kMaxExpandedBytes) {
    return Fail("is larger than " + std::to_string(kMaxExpandedBytes) +
                " bytes after its aliases are expanded");
  }
  return true;
}

bool TreeBuilder::Start(Json container, Anchor anchor) {
  if (!error_.empty()) return false;
  if (ExpectsKey()) return Fail("has a map or list as a key; only plain values can be keys");
  if (stack_.size() >= static_cast<size_t>(kMaxManifestDepth)) {
    return Fail("is nested deeper than " + std::to_string(kMaxManifestDepth) + " levels");
  }
  Frame frame;
  frame.size_before = size_;
  frame.is_map = container.is_object();
  frame.expects_key = frame.is_map;
  frame.value = std::move(container);
  frame.anchor = anchor;
  stack_.push_back(std::move(frame));
  return Grow({1, 0});
}

bool TreeBuilder::End() {
  if (!error_.empty()) return false;
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  // Own keys win over merged ones, an earlier merge over a later. Source: YAML merge key type.
  for (Json& merged : frame.merged) {
    for (auto& [key, value] : merged.items()) {
      if (!frame.value.contains(key)) frame.value[key] = value;
    }
  }
  if (frame.anchor != 0) {
    const Size size{size_.nodes - frame.size_before.nodes, size_.bytes - frame.size_before.bytes};
    anchors_[frame.anchor] = {frame.value, size};
  }
  return Place(std::move(frame.value));
}

bool TreeBuilder::Key(std::string key) {
  if (!error_.empty()) return false;
  Frame& frame = stack_.back();
  if (frame.value.contains(key)) {
    // What is no name of a field may be a secret that stands where a key belongs.
    const std::string shown = rules::kConfigKey.broken(key) ? "a key" : "the key " + Quoted(key);
    return Fail("has " + shown + " twice in one map");
  }
  frame.key = std::move(key);
  frame.expects_key = false;
  return Grow({0, frame.key.size()});
}

bool TreeBuilder::MergeKey() {
  if (!error_.empty()) return false;
  stack_.back().expects_key = false;
  stack_.back().merging = true;
  return true;
}

bool TreeBuilder::Value(Json scalar, Anchor anchor) {
  if (!error_.empty()) return false;
  const Size size{1, scalar.is_string() ? scalar.get_ref<const std::string&>().size() : 0};
  if (!Grow(size)) return false;
  if (anchor != 0) anchors_[anchor] = {scalar, size};
  return Place(std::move(scalar));
}

bool TreeBuilder::Alias(Anchor anchor) {
  if (!error_.empty()) return false;
  const auto found = anchors_.find(anchor);
  // An alias inside the node that it names has no end.
  if (found == anchors_.end()) return Fail("has an alias to a node that is not complete");
  if (ExpectsKey()) {
    const Json& key = found->second.value;
    return key.is_string() ? Key(key.get<std::string>())
                           : Fail("has an alias as a key that is not a string");
  }
  // Before the copy: the copy is what would hurt.
  return Grow(found->second.size) && Place(found->second.value);
}

bool TreeBuilder::Place(Json value) {
  if (stack_.empty()) {
    root_ = std::move(value);
    return true;
  }
  Frame& frame = stack_.back();
  if (!frame.is_map) {
    frame.value.push_back(std::move(value));
    return true;
  }
  frame.expects_key = true;
  if (!std::exchange(frame.merging, false)) {
    frame.value[std::exchange(frame.key, {})] = std::move(value);
    return true;
  }
  const std::vector<Json> maps =
      value.is_array() ? value.get<std::vector<Json>>() : std::vector<Json>{std::move(value)};
  for (const Json& map : maps) {
    if (!map.is_object()) return Fail("merges (\"<<\") something that is not a map");
    frame.merged.push_back(map);
  }
  return true;
}

std::optional<nlohmann::json> TreeBuilder::Take() {
  if (!error_.empty() || !stack_.empty()) return std::nullopt;
  return std::exchange(root_, std::nullopt);
}

}  // namespace volumed
