// FieldReader: typed access to the fields of one JSON object of a manifest. A wrong field becomes a
// problem with its full path, its value stays at the default, and reading goes on.
//
// It is one of three visitors of kube/object_fields.h, where every typed field is declared once:
// FieldReader fills an object, FieldWriter prints it, FieldLister lists the fields themselves.
// Threads: one. Blocks: no. For use in .cc files of kube/ only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/secret.h"
#include "kube/field_problem.h"
#include "kube/field_rules.h"
#include "kube/objects.h"

namespace volumed {

// In all methods `name` is the field's name in the manifest. A field that is absent or null, and a
// list that is empty, leaves `out` as it is, but for Bool() with a default value; it is a problem
// with Presence::kRequired alone. A value of another type is always a problem. Whether the rules
// for texts count is said by the ProblemSink's DecodeRules.
class FieldReader {
 public:
  using Json = nlohmann::json;

  // `path` is "" for the document itself. REQUIRES: object.is_object(); `object` and `problems`
  // outlive the reader.
  FieldReader(const Json& object, std::string path, ProblemSink& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {}

  // The rule is applied to values that are present and not ""; "" counts as absent, as in Go.
  void Text(const char* name, std::string& out, const TextRule& rule = rules::kAnyText,
            Presence presence = Presence::kOptional);
  // Here "" is a value, and differs from an absent field.
  void Text(const char* name, std::optional<std::string>& out,
            const TextRule& rule = rules::kAnyText);
  // Like Text, but stores CleanPath() of the value. Its rule sees the value as written.
  void Path(const char* name, std::string& out, const TextRule& rule, Presence presence);
  // Writes the default value if the field is absent.
  void Bool(const char* name, bool& out, bool default_value = false);
  void Bool(const char* name, std::optional<bool>& out);
  // Reads a quantity, which is a text or a bare number.
  void Amount(const char* name, std::optional<Quantity>& out);
  void Amount(const char* name, Quantity& out, Presence presence);
  // Reads a map of quantities, which may have any keys.
  void Amounts(const char* name, ResourceList& out);
  // Reads an RFC 3339 time.
  void Time(const char* name, std::optional<int64_t>& out_unix_millis);
  // Each text of the list has to keep the rule, "" as well; one that does not, or another value, is
  // left out of `out`.
  void Texts(const char* name, std::vector<std::string>& out,
             const TextRule& rule = rules::kAnyText);
  void Ints(const char* name, std::vector<int64_t>& out, const IntRule& rule);
  // Entries whose key or value breaks its rule are left out, whatever the DecodeRules. A value that
  // is null counts as "", as in Go.
  void TextMap(const char* name, StringMap& out, const TextRule& key_rule = rules::kAnyText,
               const TextRule& value_rule = rules::kAnyText);
  // The manifest has base64, the object gets the bytes.
  void BytesMap(const char* name, StringMap& out, const TextRule& key_rule);
  // As BytesMap(); but a key that breaks its rule is not shown in the problem, since somebody may
  // have put a secret where a key belongs.
  void SecretBytesMap(const char* name, std::map<std::string, Secret<std::string>>& out,
                      const TextRule& key_rule);
  // The manifest has plain text; it overwrites entries with the same key.
  void SecretTextMap(const char* name, std::map<std::string, Secret<std::string>>& out,
                     const TextRule& key_rule);
  // Reads a list of objects of which one text field is kept: [{ip: 10.0.0.1}].
  void Wrapped(const char* name, const char* inner, std::vector<std::string>& out);
  // Reads any JSON object, which is kept as JSON text.
  void JsonText(const char* name, std::string& out, Presence presence = Presence::kOptional);

  // Reads an integer within the rule's limits and those of `Int`; a fraction is a problem.
  template <typename Int>
  void Number(const char* name, Int& out, const IntRule& rule,
              Presence presence = Presence::kOptional) {
    if (const std::optional<int64_t> value = ReadInt(name, WithinType<Int>(rule), presence)) {
      out = static_cast<Int>(*value);
    }
  }
  template <typename Int>
  void Number(const char* name, std::optional<Int>& out, const IntRule& rule) {
    if (const std::optional<int64_t> value =
            ReadInt(name, WithinType<Int>(rule), Presence::kOptional)) {
      out = static_cast<Int>(*value);
    }
  }

  // Reads a text that EnumNames<E> has; "" counts as absent.
  template <typename E>
  void Enum(const char* name, E& out, Presence presence = Presence::kOptional) {
    const std::optional<std::string> text = ReadText(name, rules::kAnyText, presence);
    if (text) ParseEnum(name, *text, out);
  }
  template <typename E>
  void Enum(const char* name, std::optional<E>& out) {
    E value{};
    const bool present = Find(name) != nullptr;
    const size_t before = problem_count_;
    Enum(name, value);
    if (present && before == problem_count_ && IsNonEmptyText(name)) out = value;
  }

  // A list of texts that each name a value; a value that is listed twice is kept once.
  template <typename E>
  void Enums(const char* name, std::vector<E>& out, Presence presence = Presence::kOptional) {
    const Json* list = FindArray(name, presence);
    if (list == nullptr) return;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string element = std::string(name) + "[" + std::to_string(i) + "]";
      const std::string* text = TextOf(element, (*list)[i]);
      E value{};
      if (text == nullptr || !ParseEnum(element, *text, value)) continue;
      if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
    }
  }

  // If there is an object under `name`, `fields(FieldReader&)` reads its fields.
  template <typename F>
  void Nested(const char* name, Presence presence, F fields) {
    if (const Json* object = FindObject(name, presence)) {
      FieldReader nested(*object, PathOf(name), problems_);
      fields(nested);
    }
  }
  // The fields of `out` that the manifest's object does not have stay as they are.
  template <typename T>
  void Struct(const char* name, T& out, Presence presence = Presence::kOptional) {
    Nested(name, presence, [&out](FieldReader& nested) { Fields(nested, out); });
  }
  // Makes the optional value if there is an object, even an empty one.
  template <typename T>
  void Maybe(const char* name, std::optional<T>& out) {
    Nested(name, Presence::kOptional,
           [&out](FieldReader& nested) { Fields(nested, out.emplace()); });
  }
  // Appends one element for each object of the list.
  template <typename T>
  void List(const char* name, std::vector<T>& out, Presence presence = Presence::kOptional) {
    const Json* list = FindArray(name, presence);
    if (list == nullptr) return;
    out.reserve(list->size());
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = PathOf(name) + "[" + std::to_string(i) + "]";
      // The element is appended even when it is wrong, so that indices of later checks hold.
      T& element = out.emplace_back();
      if (!CheckObject((*list)[i], path)) continue;
      FieldReader nested((*list)[i], path, problems_);
      Fields(nested, element);
    }
  }

  // Reads one alternative of a union, chosen by which field is present. `seen` counts the
  // alternatives that are present. A second one that is present is a problem, and is not read.
  template <typename T, typename Variant>
  void Case(const char* name, Variant& out, int& seen) {
    if (!CountCase(name, seen)) return;
    T& alternative = out.template emplace<T>();
    Nested(name, Presence::kOptional,
           [&alternative](FieldReader& nested) { Fields(nested, alternative); });
  }
  // Does the same for a source without an implementation, of which only the name is kept.
  template <typename Variant>
  void RemovedCase(const char* name, Variant& out, int& seen) {
    if (!CountCase(name, seen)) return;
    if (FindObject(name, Presence::kOptional) != nullptr) out = RemovedVolumeSource{name};
  }
  // A field that Kubernetes has, and that an object at this place may not have.
  void Forbidden(const char* name, const char* reason);
  // Called after the cases of a union that has no default alternative: if no alternative was
  // present, `reason` becomes a problem of the whole object.
  void RequireCase(int seen, std::string_view reason);

 private:
  template <typename Int>
  static IntRule WithinType(IntRule rule) {
    rule.min = std::max<int64_t>(rule.min, std::numeric_limits<Int>::min());
    rule.max = std::min<int64_t>(rule.max, std::numeric_limits<Int>::max());
    return rule;
  }

  // Null when the field is absent or null.
  const Json* Find(const char* name) const;
  bool IsNonEmptyText(const char* name) const;
  const Json* FindObject(const char* name, Presence presence);
  const Json* FindArray(const char* name, Presence presence);
  bool CheckObject(const Json& value, const std::string& path);
  bool CountCase(const char* name, int& seen);
  template <typename E>
  bool ParseEnum(std::string_view name, const std::string& text, E& out) {
    std::string known;
    for (const auto& [value, value_name] : EnumNames<E>::kValues) {
      if (text == value_name) {
        out = value;
        return true;
      }
      known += (known.empty() ? "" : ", ") + std::string(value_name);
    }
    Problem(name, Quoted(text) + " is not one of " + known);
    return false;
  }
  // The text of a list's element; null, with a problem, if the element is not a text.
  const std::string* TextOf(const std::string& element, const Json& value);
  // Why the text is refused; nullopt if it is accepted.
  std::optional<std::string> WhyRefused(const TextRule& rule, std::string_view text) const;
  std::optional<std::string> ReadText(const char* name, const TextRule& rule, Presence presence);
  std::optional<int64_t> ReadInt(const char* name, const IntRule& rule, Presence presence);
  // Whether a key that breaks its rule may stand in the problem.
  enum class Keys { kShown, kMayBeSecret };
  // Calls store(key, text) for each entry whose key and value are right.
  template <typename Store>
  void ReadMap(const char* name, const TextRule& key_rule, Store store, Keys keys = Keys::kShown);
  template <typename Store>
  void ReadBase64Map(const char* name, const TextRule& key_rule, Store store,
                     Keys keys = Keys::kShown);
  std::string PathOf(std::string_view name) const;
  void Problem(std::string_view name, std::string reason);

  const Json& object_;
  const std::string path_;
  ProblemSink& problems_;
  size_t problem_count_ = 0;  // of this reader
};

}  // namespace volumed
