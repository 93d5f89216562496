// Lists every typed field that a manifest may hold, from the same declarations that the decoder
// uses (kube/object_fields.h). kube/unknown_fields.h takes from the list what this program reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/field_rules.h"
#include "kube/objects.h"

namespace volumed {

// What a manifest has under the field's name. kText, kTime and kEnum are JSON strings, kAmount is a
// string or a number.
enum class FieldType {
  kText,
  kBool,
  kNumber,
  kAmount,
  kTime,
  kEnum,
  kTextList,
  kNumberList,
  kEnumList,
  kTextMap,
  kBytesMap,  // base64
  kAmountMap,
  kObject,
  kList,  // of objects
};

// A field of a kind, and the rules for its value alone.
struct FieldInfo {
  // "spec.volumes[*].secret.items[*].mode": the path from the object; "[*]" stands for any element
  // of a list.
  std::string path;
  FieldType type = FieldType::kText;
  bool required = false;
  // The rule for a text, for each text of a list, or for the keys of a map; null for other types.
  // It is one of kube/value_rules.h, and lives as long as the program.
  const TextRule* text_rule = nullptr;
  // The limits of a number or of each number of a list, within those of the C++ type.
  IntRule int_rule;
  // The texts that kEnum and kEnumList allow.
  std::vector<std::string_view> enum_names;
};

// Returns the fields in the order of declaration, an object before its own fields; apiVersion and
// kind are not among them. Threads: any. Blocks: no.
std::vector<FieldInfo> ListFields(ObjectKind kind);

}  // namespace volumed
