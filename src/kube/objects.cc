#include "kube/objects.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <type_traits>

namespace volumed {
namespace {

using AllFacts = std::array<ObjectKindFacts, std::variant_size_v<Object>>;

template <typename... Objects>
constexpr AllFacts ListFacts(std::type_identity<std::variant<Objects...>>) {
  return {ObjectTraits<Objects>::kFacts...};
}

constexpr AllFacts kFacts = ListFacts(std::type_identity<Object>());

constexpr bool AreInOrder(const AllFacts& facts) {
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].kind != kAllObjectKinds[i]) return false;
  }
  return true;
}
static_assert(AreInOrder(kFacts), "ObjectKind and the alternatives of Object differ");

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

bool operator==(const SecretObject& a, const SecretObject& b) {
  return a.metadata == b.metadata && a.type == b.type && a.immutable == b.immutable &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.Reveal() == y.second.Reveal();
                    });
}

const ObjectKindFacts& KindFactsOf(ObjectKind kind) { return kFacts.at(static_cast<size_t>(kind)); }

std::string_view ObjectKindName(ObjectKind kind) { return KindFactsOf(kind).name; }

std::string_view ApiVersionOf(ObjectKind kind) { return KindFactsOf(kind).api_version; }

bool IsClusterScoped(ObjectKind kind) { return KindFactsOf(kind).scope == ObjectScope::kCluster; }

bool HasUidOnRecord(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim ||
         kind == ObjectKind::kVolumeSnapshot || kind == ObjectKind::kVolumeSnapshotContent;
}

std::optional<ObjectKind> ParseObjectKind(std::string_view name) {
  const std::string lower = Lower(name);
  if (lower.empty()) return std::nullopt;
  for (const ObjectKindFacts& kind : kFacts) {
    if (lower == Lower(kind.name) || lower == kind.plural || lower == kind.short_name) {
      return kind.kind;
    }
  }
  return std::nullopt;
}

std::string ToString(const ObjectKey& key) {
  std::string text(ObjectKindName(key.kind));
  text += ' ';
  if (!key.name_space.empty()) text += key.name_space + '/';
  return text + key.name;
}

ObjectKind KindOf(const Object& object) { return kAllObjectKinds.at(object.index()); }

const ObjectMeta& MetaOf(const Object& object) {
  return std::visit([](const auto& o) -> const ObjectMeta& { return o.metadata; }, object);
}

ObjectMeta& MetaOf(Object& object) {
  return std::visit([](auto& o) -> ObjectMeta& { return o.metadata; }, object);
}

ObjectKey KeyOf(const Object& object) {
  const ObjectMeta& meta = MetaOf(object);
  return {KindOf(object), meta.name_space, meta.name};
}

}  // namespace volumed
