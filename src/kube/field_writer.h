// FieldWriter: the visitor of kube/object_fields.h that prints an object as JSON. The text decodes
// into an equal object.
// Threads: one. Blocks: no. For use in .cc files of kube/ only.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/quantity.h"
#include "base/secret.h"
#include "kube/field_problem.h"
#include "kube/field_rules.h"
#include "kube/objects.h"

namespace volumed {

// What a decoder would fill in by itself is left out, as by Go's omitempty: empty texts, lists and
// maps, a truth value that is its default, an optional value that is not there, and an object of
// which nothing is left. Numbers, amounts and enum values that are not optional are always written,
// since their defaults are not known here. Rules are not looked at, and presence only decides
// whether an empty object is written.
class FieldWriter {
 public:
  using Json = nlohmann::json;

  // `secrets` says whether the values of Secrets are written or withheld.
  explicit FieldWriter(SecretEncoding secrets) : secrets_(secrets) {}

  // Returns the object that was written. It is called once, after the last field.
  Json Take() { return std::move(object_); }

  void Text(const char* name, const std::string& value, const TextRule& = rules::kAnyText,
            Presence = Presence::kOptional) {
    if (!value.empty()) object_[name] = value;
  }
  // "" is a value here, and is written.
  void Text(const char* name, const std::optional<std::string>& value,
            const TextRule& = rules::kAnyText) {
    if (value) object_[name] = *value;
  }
  void Path(const char* name, const std::string& value, const TextRule&, Presence) {
    Text(name, value);
  }
  void Bool(const char* name, bool value, bool default_value = false) {
    if (value != default_value) object_[name] = value;
  }
  void Bool(const char* name, const std::optional<bool>& value) {
    if (value) object_[name] = *value;
  }
  void Amount(const char* name, const std::optional<Quantity>& value) {
    if (value) object_[name] = value->String();
  }
  void Amount(const char* name, const Quantity& value, Presence) { object_[name] = value.String(); }
  void Amounts(const char* name, const ResourceList& values) {
    for (const auto& [key, value] : values) object_[name][key] = value.String();
  }
  void Time(const char* name, const std::optional<int64_t>& unix_millis) {
    if (unix_millis) object_[name] = FormatTimestamp(*unix_millis);
  }
  void Texts(const char* name, const std::vector<std::string>& values,
             const TextRule& = rules::kAnyText) {
    if (!values.empty()) object_[name] = values;
  }
  void Ints(const char* name, const std::vector<int64_t>& values, const IntRule&) {
    if (!values.empty()) object_[name] = values;
  }
  void TextMap(const char* name, const StringMap& values, const TextRule& = rules::kAnyText,
               const TextRule& = rules::kAnyText) {
    if (!values.empty()) object_[name] = values;
  }
  void BytesMap(const char* name, const StringMap& values, const TextRule&) {
    for (const auto& [key, bytes] : values) object_[name][key] = Base64Encode(bytes);
  }
  void SecretBytesMap(const char* name, const std::map<std::string, Secret<std::string>>& values,
                      const TextRule&) {
    for (const auto& [key, bytes] : values) {
      object_[name][key] =
          secrets_ == SecretEncoding::kWithSecrets ? Base64Encode(bytes.Reveal()) : "<withheld>";
    }
  }
  // SecretBytesMap() has written all values into data already.
  void SecretTextMap(const char*, const std::map<std::string, Secret<std::string>>&,
                     const TextRule&) {}
  void Wrapped(const char* name, const char* inner, const std::vector<std::string>& values) {
    for (const std::string& value : values) object_[name].push_back({{inner, value}});
  }
  // The value is the JSON text that FieldReader::JsonText() has kept.
  void JsonText(const char* name, const std::string& value, Presence = Presence::kOptional) {
    if (!value.empty()) object_[name] = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  }
  template <typename Int>
  void Number(const char* name, const Int& value, const IntRule&, Presence = Presence::kOptional) {
    object_[name] = value;
  }
  template <typename Int>
  void Number(const char* name, const std::optional<Int>& value, const IntRule&) {
    if (value) object_[name] = *value;
  }
  template <typename E>
  void Enum(const char* name, E value, Presence = Presence::kOptional) {
    const std::string_view text = EnumText(value);
    if (!text.empty()) object_[name] = text;
  }
  template <typename E>
  void Enum(const char* name, const std::optional<E>& value) {
    if (value) Enum(name, *value);
  }

  template <typename E>
  void Enums(const char* name, const std::vector<E>& values, Presence = Presence::kOptional) {
    for (const E value : values) object_[name].push_back(EnumText(value));
  }

  template <typename F>
  void Nested(const char* name, Presence presence, F fields) {
    FieldWriter nested(secrets_);
    fields(nested);
    if (!nested.object_.empty() || presence == Presence::kRequired) {
      object_[name] = nested.Take();
    }
  }
  template <typename T>
  void Struct(const char* name, T& value, Presence presence = Presence::kOptional) {
    Nested(name, presence, [&value](FieldWriter& nested) { Fields(nested, value); });
  }
  template <typename T>
  void Maybe(const char* name, std::optional<T>& value) {
    if (value) Struct(name, *value, Presence::kRequired);
  }
  template <typename T>
  void List(const char* name, std::vector<T>& values, Presence = Presence::kOptional) {
    for (T& value : values) {
      FieldWriter nested(secrets_);
      Fields(nested, value);
      object_[name].push_back(nested.Take());
    }
  }
  template <typename T, typename Variant>
  void Case(const char* name, Variant& value, int&) {
    if (T* alternative = std::get_if<T>(&value)) Struct(name, *alternative, Presence::kRequired);
  }
  // Nothing of such a source is kept but its name, so an empty object is written.
  template <typename Variant>
  void RemovedCase(const char* name, Variant& value, int&) {
    const auto* removed = std::get_if<RemovedVolumeSource>(&value);
    if (removed != nullptr && removed->kind == name) object_[name] = Json::object();
  }
  void Forbidden(const char*, const char*) {}
  void RequireCase(int, std::string_view) {}

 private:
  const SecretEncoding secrets_;
  Json object_ = Json::object();
};

}  // namespace volumed
