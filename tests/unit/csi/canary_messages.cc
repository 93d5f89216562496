#include "unit/csi/canary_messages.h"

#include <array>
#include <string_view>

#include "base/base64.h"
#include "csi.pb.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What a secret ends in: characters that are written in many ways. The columns: as it is, Go's
// encoding/json, JSON in ASCII, Python's repr(), of bytes, a URL, a URL's query, in lower case,
// XML, a shell's quotes.
using Character = std::array<std::string_view, 10>;
constexpr std::array<Character, 10> kCharacters{{
    {"\"", "\\\"", "\\\"", "\"", "\"", "%22", "%22", "%22", "&quot;", "\""},
    {"&", "\\u0026", "&", "&", "&", "%26", "%26", "%26", "&amp;", "&"},
    {"<", "\\u003c", "<", "<", "<", "%3C", "%3C", "%3c", "&lt;", "<"},
    {"'", "'", "'", "\\'", "\\'", "%27", "%27", "%27", "&#39;", "'\\''"},
    {"\\", "\\\\", "\\\\", "\\\\", "\\\\", "%5C", "%5C", "%5c", "\\", "\\"},
    {"\u00e9", "\u00e9", "\\u00e9", "\u00e9", "\\xc3\\xa9", "%C3%A9", "%C3%A9", "%c3%a9", "\u00e9",
     "\u00e9"},
    {"\U0001f600", "\U0001f600", "\\ud83d\\ude00", "\U0001f600", "\\xf0\\x9f\\x98\\x80",
     "%F0%9F%98%80", "%F0%9F%98%80", "%f0%9f%98%80", "\U0001f600", "\U0001f600"},
    {" ", " ", " ", " ", " ", "%20", "+", "%20", " ", " "},
    {"/", "/", "/", "/", "/", "%2F", "/", "%2f", "/", "/"},
    {"+", "+", "+", "+", "+", "%2B", "%2B", "%2b", "+", "+"},
}};

std::string EndIn(size_t column) {
  std::string end;
  for (const Character& character : kCharacters) end += character[column];
  return end + "end";
}

const std::string kEnd = EndIn(0);

class Filler {
 public:
  explicit Filler(std::vector<std::string>& canaries) : canaries_(canaries) {}

  void Fill(Message& message, bool secret) {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      FillField(message, field, secret || field.options().GetExtension(::csi::v1::csi_secret));
    }
  }

 private:
  void FillField(Message& message, const FieldDescriptor& field, bool secret) {
    const Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = Text(message, field, secret);
        if (many) return reflection.AddString(&message, &field, text);
        return reflection.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(many ? *reflection.AddMessage(&message, &field)
                         : *reflection.MutableMessage(&message, &field),
                    secret);
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? reflection.AddInt64(&message, &field, 1)
                    : reflection.SetInt64(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_INT32:
        return many ? reflection.AddInt32(&message, &field, 1)
                    : reflection.SetInt32(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? reflection.AddBool(&message, &field, true)
                    : reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_ENUM:
        return many ? reflection.AddEnumValue(&message, &field, 1)
                    : reflection.SetEnumValue(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return;  // CSI has none
    }
  }

  std::string Text(const Message& message, const FieldDescriptor& field, bool secret) {
    const std::string number = std::to_string(++count_);
    const bool is_key = message.GetDescriptor()->options().map_entry() && field.number() == 1;
    if (is_key) return "key-" + number;
    if (field.name() == "mount_flags") {
      canaries_.push_back("CANARY-" + number + "-flag");
      return "password=" + canaries_.back();
    }
    if (!secret) return "plain-" + number;
    canaries_.push_back("CANARY-" + number + kEnd);
    return canaries_.back();
  }

  std::vector<std::string>& canaries_;
  int count_ = 100;  // so that no number begins another
};

}  // namespace

std::vector<std::string> CanarySpellings(const std::string& canary) {
  const std::string beginning = canary.substr(0, canary.size() - kEnd.size());
  const bool has_end = canary == beginning + kEnd;
  std::vector<std::string> spellings;
  for (size_t column = 0; column < std::tuple_size_v<Character>; ++column) {
    spellings.push_back(has_end ? beginning + EndIn(column) : canary);
  }
  spellings.push_back(Base64Encode(canary));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : canary) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 0xf]};
  }
  spellings.push_back(std::move(hex));
  return spellings;
}

CanaryMessage CanaryMessageOf(const google::protobuf::Descriptor& type) {
  CanaryMessage made;
  made.message.reset(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
  Filler(made.canaries).Fill(*made.message, false);
  return made;
}

}  // namespace volumed
