#include "kube/field_list.h"

#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/secret.h"
#include "kube/object_fields.h"
#include "kube/snapshot_fields.h"
#include "kube/storage_fields.h"

namespace volumed {
namespace {

template <typename Int>
IntRule WithinType(IntRule rule) {
  if (rule.min < std::numeric_limits<Int>::min()) rule.min = std::numeric_limits<Int>::min();
  if (rule.max > std::numeric_limits<Int>::max()) rule.max = std::numeric_limits<Int>::max();
  return rule;
}

// The visitor of kube/object_fields.h that looks at the declarations instead of values: it walks
// into every object, one element of every list and every alternative of every union.
class FieldLister {
 public:
  FieldLister(std::string path, std::vector<FieldInfo>& fields)
      : path_(std::move(path)), fields_(fields) {}

  void Text(const char* name, std::string&, const TextRule& rule = rules::kAnyText,
            Presence presence = Presence::kOptional) {
    Add(name, FieldType::kText, presence).text_rule = &rule;
  }
  void Text(const char* name, std::optional<std::string>&, const TextRule& rule = rules::kAnyText) {
    Add(name, FieldType::kText).text_rule = &rule;
  }
  void Path(const char* name, std::string& out, const TextRule& rule, Presence presence) {
    Text(name, out, rule, presence);
  }
  void Bool(const char* name, bool&, bool = false) { Add(name, FieldType::kBool); }
  void Bool(const char* name, std::optional<bool>&) { Add(name, FieldType::kBool); }
  void Amount(const char* name, std::optional<Quantity>&) { Add(name, FieldType::kAmount); }
  void Amount(const char* name, Quantity&, Presence presence) {
    Add(name, FieldType::kAmount, presence);
  }
  void Amounts(const char* name, ResourceList&) { Add(name, FieldType::kAmountMap); }
  void Time(const char* name, std::optional<int64_t>&) { Add(name, FieldType::kTime); }
  void Texts(const char* name, std::vector<std::string>&, const TextRule& rule = rules::kAnyText) {
    Add(name, FieldType::kTextList).text_rule = &rule;
  }
  void Ints(const char* name, std::vector<int64_t>&, const IntRule& rule) {
    Add(name, FieldType::kNumberList).int_rule = rule;
  }
  void TextMap(const char* name, StringMap&, const TextRule& key_rule = rules::kAnyText,
               const TextRule& = rules::kAnyText) {
    Add(name, FieldType::kTextMap).text_rule = &key_rule;
  }
  void BytesMap(const char* name, StringMap&, const TextRule& key_rule) {
    Add(name, FieldType::kBytesMap).text_rule = &key_rule;
  }
  void SecretBytesMap(const char* name, std::map<std::string, Secret<std::string>>&,
                      const TextRule& key_rule) {
    Add(name, FieldType::kBytesMap).text_rule = &key_rule;
  }
  void SecretTextMap(const char* name, std::map<std::string, Secret<std::string>>&,
                     const TextRule& key_rule) {
    Add(name, FieldType::kTextMap).text_rule = &key_rule;
  }
  void Wrapped(const char* name, const char* inner, std::vector<std::string>&) {
    Add(name, FieldType::kList);
    FieldLister(PathOf(name) + "[*]", fields_).Add(inner, FieldType::kText).text_rule =
        &rules::kAnyText;
  }
  void JsonText(const char* name, std::string&, Presence presence = Presence::kOptional) {
    Add(name, FieldType::kObject, presence);
  }
  template <typename Int>
  void Number(const char* name, Int&, const IntRule& rule,
              Presence presence = Presence::kOptional) {
    Add(name, FieldType::kNumber, presence).int_rule = WithinType<Int>(rule);
  }
  template <typename Int>
  void Number(const char* name, std::optional<Int>&, const IntRule& rule) {
    Add(name, FieldType::kNumber).int_rule = WithinType<Int>(rule);
  }
  template <typename E>
  void Enum(const char* name, E&, Presence presence = Presence::kOptional) {
    FieldInfo& field = Add(name, FieldType::kEnum, presence);
    for (const auto& [value, text] : EnumNames<E>::kValues) field.enum_names.push_back(text);
  }
  template <typename E>
  void Enum(const char* name, std::optional<E>&) {
    E value{};
    Enum(name, value);
  }
  template <typename E>
  void Enums(const char* name, std::vector<E>&, Presence presence = Presence::kOptional) {
    FieldInfo& field = Add(name, FieldType::kEnumList, presence);
    for (const auto& [value, text] : EnumNames<E>::kValues) field.enum_names.push_back(text);
  }
  template <typename F>
  void Nested(const char* name, Presence presence, F fields) {
    Add(name, FieldType::kObject, presence);
    FieldLister nested(PathOf(name), fields_);
    fields(nested);
  }
  template <typename T>
  void Struct(const char* name, T& value, Presence presence = Presence::kOptional) {
    Nested(name, presence, [&value](FieldLister& nested) { Fields(nested, value); });
  }
  template <typename T>
  void Maybe(const char* name, std::optional<T>&) {
    T value;
    Struct(name, value);
  }
  template <typename T>
  void List(const char* name, std::vector<T>&, Presence presence = Presence::kOptional) {
    Add(name, FieldType::kList, presence);
    FieldLister nested(PathOf(name) + "[*]", fields_);
    T element;
    Fields(nested, element);
  }
  template <typename T, typename Variant>
  void Case(const char* name, Variant&, int&) {
    T alternative;
    Struct(name, alternative);
  }
  template <typename Variant>
  void RemovedCase(const char* name, Variant&, int&) {
    Add(name, FieldType::kObject);
  }
  // Such a field holds nothing.
  void Forbidden(const char*, const char*) {}
  void RequireCase(int, std::string_view) {}

 private:
  std::string PathOf(const char* name) const { return path_.empty() ? name : path_ + "." + name; }

  FieldInfo& Add(const char* name, FieldType type, Presence presence = Presence::kOptional) {
    FieldInfo& field = fields_.emplace_back();
    field.path = PathOf(name);
    field.type = type;
    field.required = presence == Presence::kRequired;
    return field;
  }

  const std::string path_;
  std::vector<FieldInfo>& fields_;
};

template <typename T>
std::vector<FieldInfo> FieldsOf() {
  std::vector<FieldInfo> fields;
  FieldLister lister("", fields);
  T object;
  Fields(lister, object);
  return fields;
}

template <typename... Objects>
std::vector<FieldInfo> FieldsOfKind(std::type_identity<std::variant<Objects...>>, ObjectKind kind) {
  std::vector<FieldInfo> fields;
  const auto list_if = [&]<typename T>(std::type_identity<T>) {
    if (ObjectTraits<T>::kFacts.kind == kind) fields = FieldsOf<T>();
  };
  (list_if(std::type_identity<Objects>()), ...);
  return fields;
}

}  // namespace

std::vector<FieldInfo> ListFields(ObjectKind kind) {
  return FieldsOfKind(std::type_identity<Object>(), kind);
}

}  // namespace volumed
