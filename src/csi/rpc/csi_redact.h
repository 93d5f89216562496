// CSI messages without their secrets: for logs, the trace and the texts of errors.
//
// A secret is the value of a field that the proto marks (csi_secret), found by reflection, so a
// field that a later proto marks is stripped without a change here. Three things more are treated
// so, although no field of them is marked:
//  - the service account tokens that kubelet's protocol puts into volume_context;
//  - mount_flags, which may have passwords: of "key=value" the value is never shown, and of a flag
//    that is no plain word nothing is;
//  - in the text of an error, the value of a mount flag only if its key sounds like a secret
//    ("pass", "secret", "token", "key", "cred"): addresses and versions are what one looks for
//    there.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csi/rpc/csi_secret_memory.h"
#include "csi/rpc/csi_spellings.h"

namespace volumed {

// What stands in place of a secret. Source: kubernetes-csi/csi-lib-utils protosanitizer.
inline constexpr const char* kCsiStripped = "***stripped***";

// The message as one line of JSON-like text with the proto's field names, for people: fields that
// are not set are left out, secrets are stripped but keep their keys, and texts are printable and
// cut after 256 bytes. Beyond `most` bytes it is cut and ends in "...".
// Threads: any. Blocks: never. It costs no more than what is shown.
std::string CsiStrippedText(const google::protobuf::Message& message, size_t most);

// Whether the message has anything that CsiSecrets hides: a field that csi.proto marks as secret,
// mount flags, tokens in a volume's context. Threads: any. Blocks: never.
bool CsiHasSecrets(const google::protobuf::Message& message);

// Takes the secrets out of a request, with their keys: the fields that csi.proto marks, and tokens
// in a volume's context. Mount flags stay, since they are what a mount is made with. Threads: any.
// Blocks: never.
void CsiTakeOutSecrets(google::protobuf::Message& message);

// The values that CsiSecrets looks for in what a driver says to this request, for a driver's
// memory. They are secrets.
std::vector<std::string> CsiSecretValuesIn(const google::protobuf::Message& request);

// The secret values of one request, and those that its driver was sent before, to be removed from
// what the driver says. As long as the memory withholds what the driver says, in the place of each
// text that is not empty stands until when: "[withheld, as it may have a secret in it, until ..]".
// Threads: any. It does not change, but for what the driver is sent meanwhile.
class CsiSecrets {
 public:
  CsiSecrets() = default;
  // The memory of the request's driver learns of the request's secrets. Null: nobody remembers.
  explicit CsiSecrets(const google::protobuf::Message& request,
                      std::shared_ptr<CsiSecretMemory> memory = nullptr);
  // Of a driver alone, for what it has said to no call in particular. Null: there are none.
  explicit CsiSecrets(std::shared_ptr<CsiSecretMemory> memory) : memory_(std::move(memory)) {}

  // The text without the secrets, printable, of `most` bytes at most ("..." included).
  //
  // Whatever part of the text belongs to a secret is hidden, so of two that overlap nothing is left
  // over. A value is looked for as a whole and line by line, in the spellings of csi_spellings.h.
  // Values, and lines, of less than 4 bytes are not looked for: a "1" or "yes" among the secrets
  // would leave nothing of the text. A driver that encrypts a secret, or prints a part of one, is
  // not found out. Of a text that would take more than kCsiSearchSteps nothing is shown, but how
  // long it is.
  std::string RemovedFrom(std::string_view text, size_t most) const;
  // The same of words that are not the driver's: they are never withheld.
  std::string RemovedFromOurs(std::string_view text, size_t most) const;

  // CsiStrippedText() of a message whose texts may have the secrets in them.
  std::string StrippedText(const google::protobuf::Message& message, size_t most) const;

  // The text without the secrets, as it came otherwise. Beyond `most` bytes any part of it may be
  // left out, but it has more than that if there is more. `steps` are those of the search, which
  // several texts may share: they are counted down, and once they are used up nothing is shown.
  std::string Replaced(std::string_view text, size_t most) const;
  std::string Replaced(std::string_view text, size_t most, size_t& steps) const;
  // The same of words that are not the driver's: they are never withheld.
  std::string ReplacedInOurs(std::string_view text, size_t most, size_t& steps) const;

  // All texts of the message without the secrets, also the keys of its maps, and whole otherwise.
  // What is large may take its time: it is for threads that nobody waits for.
  void RemoveFromTextsOf(google::protobuf::Message& message) const;

 private:
  // Which bytes of the text belong to a secret; empty if there are no secrets. False: not known.
  // `is_cut`: as CsiSpellings::Mark().
  bool Hide(std::string_view text, bool is_cut, std::vector<bool>& hidden, size_t& steps) const;

  std::shared_ptr<const CsiSpellings> own_;  // null: the request has none
  std::shared_ptr<CsiSecretMemory> memory_;
};

}  // namespace volumed
