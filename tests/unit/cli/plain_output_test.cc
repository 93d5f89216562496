#include "cli/plain_output.h"

#include <gtest/gtest.h>

#include <sstream>

namespace volumed {
namespace {

TEST(PlainOutputTest, ANameWithTerminalEscapesWasPrintedRaw) {
  std::ostringstream out;
  {
    const PlainOutput plain(out);
    out << "pod " << std::string("\x1b]0;x\a") << '\x1b' << "\t1\n"
        << "\xc3\xa4\xff" << std::flush;
  }
  EXPECT_EQ(out.str(), "pod \\x1b]0;x\\x07\\x1b\t1\n\xc3\xa4\\xff");
  out.str("");
  out << "\x1b";
  EXPECT_EQ(out.str(), "\x1b") << "the stream is what it was";
}

}  // namespace
}  // namespace volumed
