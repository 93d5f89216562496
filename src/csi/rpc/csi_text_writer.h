// CsiTextWriter: writes a CSI message as one line of text for people, without its secrets; and what
// counts as a secret. For csi_redact alone.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "csi/rpc/csi_spellings.h"

namespace volumed {

class CsiSecrets;

// Whether the proto marks the field, or it is a field of mount flags.
bool CsiIsSecret(const google::protobuf::FieldDescriptor& field);
bool CsiIsMountFlags(const google::protobuf::FieldDescriptor& field);
// Whether this entry of a map that is not marked is a secret all the same.
// Source: kubernetes pkg/volume/csi/csi_mounter.go@v1.36 (serviceAccount.tokens).
bool CsiIsSecretEntry(const google::protobuf::Message& entry);
// The value of an entry of a map of strings; else empty.
std::string CsiMapValue(const google::protobuf::Message& entry);

// Threads: external lock. Blocks: never. Nothing is written once the text is full.
class CsiTextWriter {
 public:
  // The text has `most` bytes at most. `secrets` are removed from the message's texts, and outlive
  // this; null: there are none.
  explicit CsiTextWriter(size_t most, const CsiSecrets* secrets = nullptr)
      : most_(most), secrets_(secrets) {}

  // As CsiStrippedText().
  void Write(const google::protobuf::Message& message);
  std::string Take();

 private:
  void WriteField(const google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field);
  void WriteMap(const google::protobuf::Message& message,
                const google::protobuf::FieldDescriptor& field, bool secret);
  // `index` is -1 for a field that is not repeated.
  void WriteValue(const google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field, int index);
  void WriteFlag(std::string_view flag);
  // A text of the message.
  void QuoteText(std::string_view text);
  void Quote(std::string_view text);
  void Put(std::string_view text);
  bool full() const { return text_.size() > most_; }

  const size_t most_;
  const CsiSecrets* const secrets_;
  size_t steps_ = kCsiSearchSteps;  // those that are left for all texts of the message
  std::string text_;
};

}  // namespace volumed
