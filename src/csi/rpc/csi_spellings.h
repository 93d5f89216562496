// The ways in which programs write a text that is not theirs: in a string literal of C, Go, Python,
// JSON (with all but ASCII escaped, or "&" and "<"), in a URL, in XML, in a command of a shell; and
// encoded as a whole, in base64, as hexadecimal digits, or as a list of its bytes' numbers. All of
// these also broken into lines. For csi_redact and csi_secret_memory.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// The text as it is, as hexadecimal digits of either case, as decimal numbers with blanks between
// them, and in base64 of either alphabet, with and without its padding; also as a part of something
// longer that is in base64, as the password of HTTP's "Basic" is. What base64 makes of the text's
// ends depends on what stands beside it then: the bits of one character at each end are not in it.
// All but the first also of the text as it stands in a string of JSON, of any JsonStyle, if that
// has 16 KiB at most: a JSON may be encoded as a whole. Sorted, each once. Pure.
std::vector<std::string> CsiEncodingsOf(std::string_view text);

// The steps that the search of one text, or of the texts of one message, may take: some
// milliseconds at most, as it holds up a thread that all drivers' calls need. Sixteen KiB of an
// ordinary text take a third of it.
inline constexpr size_t kCsiSearchSteps = 200'000;

// Texts to look for, however they are spelled. They are secrets: nothing hands them out. Threads:
// external lock.
class CsiSpellings {
 public:
  void Add(std::string_view text);
  void AddAll(const std::vector<std::string>& texts);
  // Of texts that were added twice, one goes.
  void Remove(std::string_view text);
  bool empty() const { return count_ == 0; }

  // Sets the places of those bytes of the text that belong to a spelling of any. Each byte of a
  // spelling may be written in any way, whatever the bytes beside it are, and escapes may be
  // escaped again: JSON within JSON. Between any two bytes there may be a line's end, in any way of
  // writing it, and the blanks and tabs with which the next line begins; between two pairs of
  // hexadecimal digits also blanks, commas, ':', '-' and "0x", if there are four pairs at least;
  // and between two numbers commas. False: `steps` were not enough, which are counted down by what
  // it took; then nothing is known, and `places` is as it was. Of a text and a secret of many
  // quotes or backslashes each number of them may stand for each other, so that takes the product
  // of both sizes; all else takes about the size of the text, however many are looked for.
  // `is_cut`: the text is the beginning of another one, and what may end behind it is marked too.
  // REQUIRES: text and places have one size.
  [[nodiscard]] bool Mark(std::string_view text, bool is_cut, std::vector<bool>& places,
                          size_t& steps) const;

 private:
  size_t count_ = 0;
  // The encodings, by their first byte; each list is sorted.
  std::array<std::vector<std::string>, 256> wanted_;
};

}  // namespace volumed
