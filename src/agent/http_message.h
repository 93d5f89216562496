// The small part of HTTP/1.1 that a scraper or a probe uses: reading requests without a body, and
// writing whole answers. Source: RFC 9110, RFC 9112.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace volumed {

// The limit for a request line and its header lines together.
inline constexpr size_t kMaxHttpHeadBytes = 8 * 1024;

// What is needed of a request. The method is any token, as the client wrote it.
struct HttpRequest {
  std::string method;
  std::string path;  // without the query; "/" if the request has none
  bool keep_alive = false;
  bool accepts_gzip = false;
};

struct HttpParsed {
  enum class State { kIncomplete, kComplete, kRefused };
  State state = State::kIncomplete;
  HttpRequest request;  // if kComplete
  size_t consumed = 0;  // if kComplete: the bytes of the request
  int refusal = 0;      // if kRefused: the status to answer; the connection ends after that
};

// Reads the request at the beginning of `bytes`, which may hold a part of a request, or more than
// one. It keeps no state: an incomplete request is given again, with more bytes. Threads: any.
// Blocks: never. Refusals: 400 (not HTTP), 413 (the request has a body), 431 (longer than
// kMaxHttpHeadBytes), 505 (another version of HTTP). Which methods and paths there are is the
// caller's matter.
HttpParsed ParseHttpRequest(std::string_view bytes);

struct HttpResponseHead {
  int status = 200;
  std::string_view content_type;
  size_t content_length = 0;
  bool gzip = false;
  bool keep_alive = false;
  int keep_alive_seconds = 0;  // how long the connection stays open, and for how many more requests
  int requests_left = 0;
};

// All bytes in front of the body, with the empty line. Threads: any. Blocks: never.
std::string FormatHttpHead(const HttpResponseHead& head);

// Compresses in the gzip format, at the fastest level; "" if there is no memory for it. Threads:
// any. Blocks: computes for about 10 ms per megabyte.
std::string Gzip(std::string_view text);

}  // namespace volumed
