// Lists every typed field that a manifest may hold, from the same declarations that the decoder
// uses. Tests generate bad input from the list; documentation can be printed from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/field_rules.h"
#include "kube/objects.h"

namespace volumed {

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

struct FieldInfo {
  std::string path;  // "spec.volumes[*].secret.items[*].mode"
  FieldType type = FieldType::kText;
  bool required = false;
  const TextRule* text_rule = nullptr;  // texts; the keys of maps
  IntRule int_rule;                     // numbers
  std::vector<std::string_view> enum_names;
};

// The fields in the order of declaration. Threads: any. Blocks: no.
std::vector<FieldInfo> ListFields(ObjectKind kind);

}  // namespace volumed
