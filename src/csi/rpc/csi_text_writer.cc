#include "csi/rpc/csi_text_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "base/strings.h"
#include "csi.pb.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kTextBytes = 256;
// The longest name of a mount option that anybody has; what is longer is none.
constexpr size_t kFlagBytes = 32;

std::string MapKey(const Message& entry) {
  const FieldDescriptor* key = entry.GetDescriptor()->map_key();
  return key->cpp_type() == FieldDescriptor::CPPTYPE_STRING
             ? entry.GetReflection()->GetString(entry, key)
             : "";
}

bool IsPlainWord(std::string_view text) {
  return !text.empty() && text.size() <= kFlagBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

}  // namespace

bool CsiIsSecret(const FieldDescriptor& field) {
  return field.options().GetExtension(::csi::v1::csi_secret);
}

bool CsiIsMountFlags(const FieldDescriptor& field) {
  return field.name() == "mount_flags" && field.is_repeated() &&
         field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

bool CsiIsSecretEntry(const Message& entry) {
  return MapKey(entry) == "csi.storage.k8s.io/serviceAccount.tokens";
}

std::string CsiMapValue(const Message& entry) {
  const FieldDescriptor* value = entry.GetDescriptor()->map_value();
  return value->cpp_type() == FieldDescriptor::CPPTYPE_STRING
             ? entry.GetReflection()->GetString(entry, value)
             : "";
}

void CsiTextWriter::Write(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  Put("{");
  for (const FieldDescriptor* field : fields) {
    if (full()) return;
    if (field != fields.front()) Put(",");
    Quote(field->name());
    Put(":");
    WriteField(message, *field);
  }
  Put("}");
}

void CsiTextWriter::WriteField(const Message& message, const FieldDescriptor& field) {
  const bool secret = CsiIsSecret(field);
  if (field.is_map()) return WriteMap(message, field, secret);
  if (secret) return Quote(kCsiStripped);
  if (!field.is_repeated()) return WriteValue(message, field, -1);
  Put("[");
  const int count = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < count && !full(); ++i) {
    if (i > 0) Put(",");
    WriteValue(message, field, i);
  }
  Put("]");
}

void CsiTextWriter::WriteMap(const Message& message, const FieldDescriptor& field, bool secret) {
  const Reflection& reflection = *message.GetReflection();
  const int count = reflection.FieldSize(message, &field);
  std::vector<const Message*> entries;
  entries.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    entries.push_back(&reflection.GetRepeatedMessage(message, &field, i));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Message* a, const Message* b) { return MapKey(*a) < MapKey(*b); });
  Put("{");
  for (const Message* entry : entries) {
    if (full()) return;
    if (entry != entries.front()) Put(",");
    QuoteText(MapKey(*entry));
    Put(":");
    if (secret || CsiIsSecretEntry(*entry)) {
      Quote(kCsiStripped);
    } else {
      WriteValue(*entry, *entry->GetDescriptor()->map_value(), -1);
    }
  }
  Put("}");
}

void CsiTextWriter::WriteValue(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  const auto number = [&](auto one, auto many) {
    Put(std::to_string(repeated ? (reflection.*many)(message, &field, index)
                                : (reflection.*one)(message, &field)));
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return number(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return number(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return number(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return number(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return number(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return number(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Put((repeated ? reflection.GetRepeatedBool(message, &field, index)
                           : reflection.GetBool(message, &field))
                     ? "true"
                     : "false");
    case FieldDescriptor::CPPTYPE_ENUM: {
      // A newer driver's number that this proto has no name for stays a number.
      const int value = repeated ? reflection.GetRepeatedEnumValue(message, &field, index)
                                 : reflection.GetEnumValue(message, &field);
      const auto* name = field.enum_type()->FindValueByNumber(value);
      return name != nullptr ? Quote(name->name()) : Put(std::to_string(value));
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = repeated ? reflection.GetRepeatedString(message, &field, index)
                                        : reflection.GetString(message, &field);
      return CsiIsMountFlags(field) ? WriteFlag(text) : QuoteText(text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Write(repeated ? reflection.GetRepeatedMessage(message, &field, index)
                            : reflection.GetMessage(message, &field));
  }
}

void CsiTextWriter::WriteFlag(std::string_view flag) {
  const size_t equals = flag.find('=');
  const std::string_view key = flag.substr(0, equals);
  if (!IsPlainWord(key)) return Quote(kCsiStripped);
  if (equals == std::string_view::npos) return Quote(key);
  Quote(std::string(key) + "=" + kCsiStripped);
}

void CsiTextWriter::QuoteText(std::string_view text) {
  // Before it is cut: the beginning of a secret would not be found.
  if (secrets_ == nullptr) return Quote(text);
  Quote(secrets_->Replaced(text, kTextBytes, steps_));
}

void CsiTextWriter::Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : PrintableText(BeginningOf(text, kTextBytes))) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  quoted += text.size() > kTextBytes ? "...\"" : "\"";
  Put(quoted);
}

void CsiTextWriter::Put(std::string_view text) {
  if (!full()) text_ += text;
}

std::string CsiTextWriter::Take() {
  if (!full()) return std::move(text_);
  constexpr std::string_view kMore = "...";
  const size_t kept = most_ - std::min(most_, kMore.size());
  return std::string(BeginningOf(text_, kept)) + std::string(kMore);
}

}  // namespace volumed
