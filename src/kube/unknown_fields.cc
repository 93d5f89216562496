#include "kube/unknown_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>

#include "base/strings.h"
#include "kube/field_list.h"
#include "kube/field_rules.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKnownFields =
#include "kube/known_fields.inc"
    ;

struct KnownField {
  std::string type;  // of an object, or of a list's or a map's objects; "" for all else
  bool is_map = false;
};
using KnownType = std::map<std::string, KnownField, std::less<>>;
using KnownTypes = std::map<std::string, KnownType, std::less<>>;

// "spec:PodSpec", "data", "config:*Type".
void AddField(std::string_view word, KnownType& type) {
  const size_t colon = word.find(':');
  KnownField field;
  if (colon != std::string_view::npos) {
    field.is_map = word[colon + 1] == '*';
    field.type = word.substr(colon + (field.is_map ? 2 : 1));
  }
  type.emplace(word.substr(0, colon), field);
}

// Calls visit(piece) for each piece of `text` between separators.
template <typename Visit>
void ForEachPiece(std::string_view text, char separator, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

KnownTypes ParseKnownFields() {
  KnownTypes types;
  ForEachPiece(kKnownFields, '\n', [&types](std::string_view line) {
    KnownType* type = nullptr;
    ForEachPiece(line, ' ', [&](std::string_view word) {
      if (type == nullptr) {
        type = &types[std::string(word)];
      } else {
        AddField(word, *type);
      }
    });
  });
  return types;
}

// A field that this program reads, and Kubernetes does not have. What an object that it holds may
// have is known by the fields of the program that lie below it.
void AddRead(const FieldInfo& field, ObjectKind kind, KnownTypes& types) {
  std::string type(ObjectKindName(kind));
  ForEachPiece(field.path, '.', [&](std::string_view piece) {
    const std::string name(piece.substr(0, piece.find('[')));
    if (type.empty()) return;  // of such an object every field is known
    const bool holds_objects = field.type == FieldType::kObject || field.type == FieldType::kList;
    const KnownField unknown{holds_objects ? type + "." + name : "", false};
    type = types[type].try_emplace(name, unknown).first->second.type;
  });
}

void AddReadFields(ObjectKind kind, KnownTypes& types) {
  KnownType& type = types[std::string(ObjectKindName(kind))];
  for (const char* word : {"apiVersion", "kind", "metadata:ObjectMeta"}) AddField(word, type);
  for (const FieldInfo& field : ListFields(kind)) AddRead(field, kind, types);
}

const KnownTypes& AllKnownTypes() {
  static const KnownTypes types = [] {
    KnownTypes all = ParseKnownFields();
    for (const ObjectKind kind : kAllObjectKinds) AddReadFields(kind, all);
    return all;
  }();
  return types;
}

class Search {
 public:
  explicit Search(bool may_hold_secrets) : may_hold_secrets_(may_hold_secrets) {}

  // `value` is what a field of this type holds: an object, or a list of them.
  void Value(const Json& value, std::string_view type, const std::string& path) {
    if (value.is_object()) return Object(value, type, path);
    if (!value.is_array()) return;  // another reader says what is wrong with it
    for (size_t i = 0; i < value.size(); ++i) {
      Value(value[i], type, path + "[" + std::to_string(i) + "]");
    }
  }

  std::vector<UnknownField> Take() { return std::move(found_); }

 private:
  void Object(const Json& object, std::string_view type_name, const std::string& path) {
    const auto type = AllKnownTypes().find(type_name);
    if (type == AllKnownTypes().end()) return;
    for (const auto& [name, value] : object.items()) {
      if (found_.size() >= kMaxUnknownFields) return;
      const std::string below = path.empty() ? name : path + "." + name;
      const auto field = type->second.find(name);
      if (field == type->second.end()) {
        AddUnknown(name, path, type->second);
      } else if (field->second.is_map && value.is_object()) {
        for (const auto& [key, entry] : value.items()) {
          Value(entry, field->second.type, below + "[" + key + "]");
        }
      } else if (!field->second.type.empty()) {
        Value(value, field->second.type, below);
      }
    }
  }

  void AddUnknown(const std::string& name, const std::string& path, const KnownType& type) {
    std::vector<std::string_view> known;
    for (const auto& [known_name, field] : type) known.push_back(known_name);
    UnknownField unknown;
    unknown.suggestion = Nearest(name, known);
    const bool show = !may_hold_secrets_ || !unknown.suggestion.empty();
    unknown.path = (path.empty() ? "" : path + ".") + (show ? name : "?");
    found_.push_back(std::move(unknown));
  }

  const bool may_hold_secrets_;
  std::vector<UnknownField> found_;
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The distance of Damerau and Levenshtein, with neighbours swapped only.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

// A short word has many neighbours: one letter in three may be wrong.
size_t FarthestFor(std::string_view name) { return std::min<size_t>(2, name.size() / 3); }

// Longer names are no slip of a known one, and would cost a large table.
constexpr size_t kLongestName = 64;

// "storageClassName" for "storageclass"; shorter words begin too many names.
std::string Continued(const std::string& wanted, const std::vector<std::string_view>& known) {
  constexpr size_t kShortestBeginning = 5;
  std::string_view shortest;
  for (const std::string_view candidate : known) {
    if (wanted.size() < kShortestBeginning || !Lower(candidate).starts_with(wanted)) continue;
    if (shortest.empty() || candidate.size() < shortest.size()) shortest = candidate;
  }
  return std::string(shortest);
}

}  // namespace

std::string Nearest(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > kLongestName) return "";
  const std::string wanted = Lower(name);
  std::string_view nearest;
  size_t nearest_distance = FarthestFor(name) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = Distance(wanted, Lower(candidate));
    if (distance >= nearest_distance) continue;
    nearest = candidate;
    nearest_distance = distance;
  }
  return nearest.empty() ? Continued(wanted, known) : std::string(nearest);
}

std::vector<UnknownField> FindUnknownFields(ObjectKind kind, const Json& object) {
  Search search(kind == ObjectKind::kSecret);
  search.Value(object, ObjectKindName(kind), "");
  return search.Take();
}

std::string ToReason(const UnknownField& field) {
  std::string reason = "is not a field that Kubernetes knows, and is ignored";
  if (!field.suggestion.empty()) reason += "; did you mean " + Quoted(field.suggestion) + "?";
  return reason;
}

}  // namespace volumed
