// PlainOutput: removes from the output what a terminal would obey, since others choose names,
// fields and messages.
#pragma once

#include <ostream>
#include <streambuf>

namespace volumed {

// As long as it exists, escapes control characters (except newline and tab) and bytes that are not
// UTF-8 in everything that is written to the stream. Each write is judged by itself: a character
// whose bytes come by two writes is escaped, so a text is written as a whole.
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
