// Bytes of an HTTP connection. What a request is does not depend on how many of its bytes have
// come.
#include "agent/http_message.h"

#include <algorithm>

#include "fuzz/fuzz.h"

namespace volumed::http_message_fuzz {
namespace {

using State = HttpParsed::State;

void CheckComplete(std::string_view bytes, const HttpParsed& parsed) {
  FUZZ_CHECK(parsed.consumed > 0 && parsed.consumed <= bytes.size());
  FUZZ_CHECK(parsed.consumed <= kMaxHttpHeadBytes);
  const std::string& path = parsed.request.path;
  FUZZ_CHECK(!parsed.request.method.empty());
  FUZZ_CHECK(path == "*" || path.starts_with('/'));
  FUZZ_CHECK(path.find('?') == std::string::npos);
  FUZZ_CHECK(std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < 0x7f; }));

  const HttpParsed alone = ParseHttpRequest(bytes.substr(0, parsed.consumed));
  FUZZ_CHECK(alone.state == State::kComplete && alone.consumed == parsed.consumed);
  FUZZ_CHECK(alone.request.path == path && alone.request.method == parsed.request.method);
  FUZZ_CHECK(alone.request.keep_alive == parsed.request.keep_alive);
  FUZZ_CHECK(alone.request.accepts_gzip == parsed.request.accepts_gzip);
}

void CheckCut(std::string_view bytes, const HttpParsed& parsed, size_t length) {
  const HttpParsed cut = ParseHttpRequest(bytes.substr(0, length));
  if (cut.state == State::kIncomplete) return;
  FUZZ_CHECK(cut.state == parsed.state);
  FUZZ_CHECK(cut.refusal == parsed.refusal && cut.consumed == parsed.consumed);
}

}  // namespace

FUZZ_TARGET(http_message)(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::TextOf(data, size);
  const HttpParsed parsed = ParseHttpRequest(bytes);
  switch (parsed.state) {
    case State::kComplete:
      CheckComplete(bytes, parsed);
      break;
    case State::kRefused:
      FUZZ_CHECK(parsed.refusal == 400 || parsed.refusal == 413 || parsed.refusal == 431 ||
                 parsed.refusal == 505);
      break;
    case State::kIncomplete:
      FUZZ_CHECK(size < kMaxHttpHeadBytes);
      break;
  }
  for (const size_t length : {size / 4, size / 2, size - size / 4, size - (size > 0 ? 1 : 0)}) {
    CheckCut(bytes, parsed, length);
  }
  return 0;
}

}  // namespace volumed::http_message_fuzz
