#include "csi/rpc/csi_redact.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "csi.pb.h"
#include "csi/rpc/csi_text_writer.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kLeastSecret = 4;

// What the secrets of a request are looked for as.
class SecretFinder {
 public:
  void Look(const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (CsiIsSecret(*field)) {
        TakeAll(message, *field);
      } else if (CsiIsMountFlags(*field)) {
        TakeFlags(message, *field);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        LookInto(message, *field);
      }
    }
  }

  std::vector<std::string> Take() {
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
    return std::move(values_);
  }

 private:
  void LookInto(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) return Look(reflection.GetMessage(message, &field));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& element = reflection.GetRepeatedMessage(message, &field, i);
      if (field.is_map() && CsiIsSecretEntry(element)) {
        TakeTokens(CsiMapValue(element));
      } else {
        Look(element);
      }
    }
  }

  // Every text in the field, whatever its type is.
  void TakeAll(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        Take(field.is_repeated() ? reflection.GetRepeatedString(message, &field, i)
                                 : reflection.GetString(message, &field));
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        TakeMessage(field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                        : reflection.GetMessage(message, &field),
                    field.is_map());
      }
    }
  }

  void TakeMessage(const Message& message, bool is_entry) {
    if (is_entry) return Take(CsiMapValue(message));
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) TakeAll(message, *field);
  }

  void TakeFlags(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      // One flag may be a list itself.
      for (const std::string& flag : Split(reflection.GetRepeatedString(message, &field, i), ',')) {
        const size_t equals = flag.find('=');
        if (equals != std::string::npos && SoundsSecret(flag.substr(0, equals))) {
          Take(flag.substr(equals + 1));
        }
      }
    }
  }

  static bool SoundsSecret(std::string key) {
    constexpr std::array kWords{"pass", "secret", "token", "key", "cred"};
    std::transform(key.begin(), key.end(), key.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    return std::any_of(kWords.begin(), kWords.end(),
                       [&key](const char* word) { return key.find(word) != std::string::npos; });
  }

  // A JSON object whose long strings are the tokens. A time has 20 bytes, a token hundreds.
  void TakeTokens(const std::string& json) {
    constexpr size_t kShortestToken = 32;
    Take(json);
    for (const std::string& part : Split(json, '"')) {
      if (part.size() >= kShortestToken) Take(part);
    }
  }

  void Take(const std::string& value) {
    TakeText(value);
    if (value.find('\n') == std::string::npos) return;
    for (const std::string& line : Split(value, '\n')) TakeText(std::string(TrimSpace(line)));
  }

  void TakeText(const std::string& text) {
    if (text.size() < kLeastSecret) return;
    values_.push_back(text);
    std::string escaped;
    for (const char c : text) {
      const size_t special = std::string_view("\"\\\n\r\t").find(c);
      if (special == std::string_view::npos) {
        escaped += c;
      } else {
        escaped += {'\\', "\"\\nrt"[special]};
      }
    }
    if (escaped != text) values_.push_back(std::move(escaped));
  }

  std::vector<std::string> values_;
};

}  // namespace

std::string CsiStrippedText(const Message& message, size_t most) {
  CsiTextWriter writer(most);
  writer.Write(message);
  return writer.Take();
}

CsiSecrets::CsiSecrets(const Message& request) {
  SecretFinder finder;
  finder.Look(request);
  values_ = Secret(finder.Take());
}

std::string CsiSecrets::RemovedFrom(std::string_view text, size_t most) const {
  // Which bytes belong to a secret.
  std::vector<bool> hidden(text.size());
  for (const std::string& value : values_.Reveal()) {
    size_t done = 0;
    for (size_t at = text.find(value); at != std::string_view::npos;
         at = text.find(value, at + 1)) {
      const auto from = hidden.begin() + static_cast<ptrdiff_t>(std::max(at, done));
      done = at + value.size();
      std::fill(from, hidden.begin() + static_cast<ptrdiff_t>(done), true);
    }
  }
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && hidden[end] == hidden[at]) ++end;
    if (hidden[at]) {
      shown += kCsiStripped;
    } else {
      // What is beyond `most` is not shown anyway.
      shown += PrintableText(text.substr(at, std::min(end - at, most + 1)));
    }
    if (shown.size() > most) break;
    at = end;
  }
  if (shown.size() <= most) return shown;
  constexpr std::string_view kMore = "...";
  return std::string(BeginningOf(shown, most - std::min(most, kMore.size()))) + std::string(kMore);
}

}  // namespace volumed
