// PlainOutput: what goes to a terminal without what a terminal obeys: names, fields and messages
// are chosen by others.
#pragma once

#include <ostream>
#include <streambuf>

namespace volumed {

// Escapes control characters, but for newline and tab, and bytes that are not UTF-8, in all that is
// written to a stream while it exists. A text is written as a whole, so that no character is cut.
// Threads: the stream's. Blocks: as the stream. REQUIRES: the stream outlives it.
class PlainOutput final : public std::streambuf {
 public:
  explicit PlainOutput(std::ostream& stream);
  ~PlainOutput() override;
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  std::ostream& stream_;
  std::streambuf* const below_;
};

}  // namespace volumed
