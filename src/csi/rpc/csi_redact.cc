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
constexpr size_t kMostSearched = 16 * 1024;

// From behind, as the last one takes the place of one that goes.
void TakeOutOfElements(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = reflection.FieldSize(message, &field) - 1; i >= 0; --i) {
    if (!field.is_map()) {
      CsiTakeOutSecrets(*reflection.MutableRepeatedMessage(&message, &field, i));
    } else if (CsiIsSecretEntry(reflection.GetRepeatedMessage(message, &field, i))) {
      reflection.SwapElements(&message, &field, i, reflection.FieldSize(message, &field) - 1);
      reflection.RemoveLast(&message, &field);
    }
  }
}

// Printable, and of `most` bytes at most.
std::string CutPrintable(const std::string& text, size_t most) {
  const std::string shown = PrintableText(text);
  if (shown.size() <= most) return shown;
  constexpr std::string_view kMore = "...";
  return std::string(BeginningOf(shown, most - std::min(most, kMore.size()))) + std::string(kMore);
}

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

  // A driver may have cut off the blanks around a value, or all lines but one.
  void Take(const std::string& value) {
    TakeText(value);
    TakeText(std::string(TrimSpace(value)));
    if (value.find('\n') == std::string::npos) return;
    for (const std::string& line : Split(value, '\n')) TakeText(std::string(TrimSpace(line)));
  }

  void TakeText(const std::string& text) {
    if (text.size() >= kLeastSecret) values_.push_back(text);
  }

  std::vector<std::string> values_;
};

// Takes the secrets out of the texts of a message.
class TextsOfMessage {
 public:
  TextsOfMessage(const CsiSecrets& secrets, const Message& whole)
      : secrets_(secrets),
        steps_(std::max(kCsiSearchSteps, kStepsPerByte * whole.ByteSizeLong())) {}

  void Change(Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        ChangeTexts(message, *field);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        ChangeMessages(message, *field);
      }
    }
  }

 private:
  // Several times what a text without long runs takes, with its fields' share.
  static constexpr size_t kStepsPerByte = 16;

  void ChangeTexts(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) {
      return reflection.SetString(&message, &field,
                                  Shown(field, reflection.GetString(message, &field)));
    }
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      reflection.SetRepeatedString(&message, &field, i,
                                   Shown(field, reflection.GetRepeatedString(message, &field, i)));
    }
  }

  void ChangeMessages(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) return Change(*reflection.MutableMessage(&message, &field));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      Change(*reflection.MutableRepeatedMessage(&message, &field, i));
    }
  }

  std::string Shown(const FieldDescriptor& field, const std::string& text) {
    // While one text is searched, calls of the driver may wait for its memory.
    size_t steps = std::min(steps_, kCsiSearchSteps);
    steps_ -= steps;
    // What is shown may be longer than the text, and all of it is, also of one that is withheld.
    const size_t most = text.size() * std::string_view(kCsiStripped).size();
    const std::string shown = secrets_.Replaced(text, most, steps);
    steps_ += steps;
    // A secret may have been a part of a character.
    const bool is_text = field.type() == FieldDescriptor::TYPE_STRING;
    return is_text && !IsUtf8(shown) ? PrintableText(shown) : shown;
  }

  const CsiSecrets& secrets_;
  size_t steps_;  // that are left
};

}  // namespace

bool CsiHasSecrets(const Message& message) { return !CsiSecretValuesIn(message).empty(); }

std::vector<std::string> CsiSecretValuesIn(const Message& request) {
  SecretFinder finder;
  finder.Look(request);
  return finder.Take();
}

std::string CsiStrippedText(const Message& message, size_t most) {
  CsiTextWriter writer(most);
  writer.Write(message);
  return writer.Take();
}

void CsiTakeOutSecrets(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (CsiIsSecret(*field)) {
      reflection.ClearField(&message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      CsiTakeOutSecrets(*reflection.MutableMessage(&message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      TakeOutOfElements(message, *field);
    }
  }
}

CsiSecrets::CsiSecrets(const Message& request, std::shared_ptr<CsiSecretMemory> memory)
    : memory_(std::move(memory)) {
  const std::vector<std::string> values = CsiSecretValuesIn(request);
  if (values.empty()) return;
  auto own = std::make_shared<CsiSpellings>();
  own->AddAll(values);
  own_ = std::move(own);
  if (memory_ != nullptr) memory_->Remember(values);
}

bool CsiSecrets::Hide(std::string_view text, bool is_cut, std::vector<bool>& hidden,
                      size_t& steps) const {
  const bool remembers = memory_ != nullptr && !memory_->empty();
  if (own_ == nullptr && !remembers) return true;
  hidden.resize(text.size());
  if (own_ != nullptr && !own_->Mark(text, is_cut, hidden, steps)) return false;
  return !remembers || memory_->Mark(text, is_cut, hidden, steps);
}

std::string CsiSecrets::Replaced(std::string_view text, size_t most) const {
  size_t steps = kCsiSearchSteps;
  return Replaced(text, most, steps);
}

std::string CsiSecrets::Replaced(std::string_view text, size_t most, size_t& steps) const {
  const std::string until =
      memory_ == nullptr || text.empty() ? std::string() : memory_->withheld_until();
  if (!until.empty()) return "[withheld, as it may have a secret in it, until " + until + "]";
  return ReplacedInOurs(text, most, steps);
}

std::string CsiSecrets::ReplacedInOurs(std::string_view text, size_t most, size_t& steps) const {
  const size_t whole = text.size();
  // A driver may say megabytes. What lies so far behind is not shown, unless nearly all before it
  // belongs to secrets. One that would end still farther behind is hidden to there.
  const size_t searched = std::max(kMostSearched, 2 * most + 2);
  const bool is_cut = text.size() > searched;
  if (is_cut) text = text.substr(0, searched);
  std::vector<bool> hidden;
  if (!Hide(text, is_cut, hidden, steps)) {
    return "[a text of " + std::to_string(whole) + " bytes that may contain a secret]";
  }
  if (is_cut) text = text.substr(0, searched / 2);
  if (hidden.empty()) return std::string(text.substr(0, most + 1));
  std::string shown;
  for (size_t at = 0; at < text.size() && shown.size() <= most;) {
    size_t end = at;
    while (end < text.size() && hidden[end] == hidden[at]) ++end;
    if (hidden[at]) {
      shown += kCsiStripped;
    } else {
      shown += text.substr(at, std::min(end - at, most + 1));
    }
    at = end;
  }
  return shown;
}

std::string CsiSecrets::RemovedFrom(std::string_view text, size_t most) const {
  return CutPrintable(Replaced(text, most), most);
}

std::string CsiSecrets::RemovedFromOurs(std::string_view text, size_t most) const {
  size_t steps = kCsiSearchSteps;
  return CutPrintable(ReplacedInOurs(text, most, steps), most);
}

std::string CsiSecrets::StrippedText(const Message& message, size_t most) const {
  CsiTextWriter writer(most, this);
  writer.Write(message);
  return writer.Take();
}

void CsiSecrets::RemoveFromTextsOf(Message& message) const {
  TextsOfMessage(*this, message).Change(message);
}

}  // namespace volumed
