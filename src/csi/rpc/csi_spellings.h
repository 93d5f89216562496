// The ways in which programs write a text that is not theirs: in a string literal of C, Go, Python,
// JSON (with all but ASCII escaped, or "&" and "<"), in a URL, in XML, in a command of a shell; and
// encoded as a whole, in base64 or as hexadecimal digits. For csi_redact and csi_secret_memory.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// The text as it is, as hexadecimal digits of either case, and in base64 of either alphabet, with
// and without its padding; also as a part of something longer that is in base64, as the password of
// HTTP's "Basic" is. What base64 makes of the text's ends depends on what stands beside it then:
// the bits of one character at each end are not in it. Sorted, each once. Pure.
std::vector<std::string> CsiEncodingsOf(std::string_view text);

// Where the longest spelling of `wanted` ends that begins at `at`; `at` if none does. Each byte of
// it may be written in any way, whatever the bytes beside it are, and escapes may be escaped again:
// JSON within JSON. Pure; it takes time by the product of both sizes at worst.
// REQUIRES: at < text.size().
size_t CsiSpellingEnd(std::string_view text, size_t at, std::string_view wanted);

// Texts to look for, however they are spelled. They are secrets: nothing hands them out. Threads:
// external lock.
class CsiSpellings {
 public:
  void Add(std::string_view text);
  // Of texts that were added twice, one goes.
  void Remove(std::string_view text);
  bool empty() const { return count_ == 0; }

  // Sets the places of those bytes of the text that belong to a spelling of any. REQUIRES: both
  // have one size.
  void Mark(std::string_view text, std::vector<bool>& places) const;

 private:
  size_t EndAt(std::string_view text, size_t at) const;

  size_t count_ = 0;
  // The encodings, by their first byte.
  std::array<std::vector<std::string>, 256> wanted_;
};

}  // namespace volumed
