#include "cli/plain_output.h"

#include <string>
#include <string_view>

#include "base/printable_text.h"

namespace volumed {

PlainOutput::PlainOutput(std::ostream& stream) : stream_(stream), below_(stream.rdbuf(this)) {}

PlainOutput::~PlainOutput() { stream_.rdbuf(below_); }

PlainOutput::int_type PlainOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PlainOutput::xsputn(const char* text, std::streamsize size) {
  const std::string plain =
      PrintableText(std::string_view(text, static_cast<size_t>(size)), "\t\n");
  const auto plain_size = static_cast<std::streamsize>(plain.size());
  return below_->sputn(plain.data(), plain_size) == plain_size ? size : 0;
}

int PlainOutput::sync() { return below_->pubsync(); }

}  // namespace volumed
