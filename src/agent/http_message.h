// The little of HTTP/1.1 that a scraper or a probe speaks: requests without a body are read, whole
// answers are written. Source: RFC 9110, RFC 9112.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace volumed {

// Of a request line and its header lines together.
inline constexpr size_t kMaxHttpHeadBytes = 8 * 1024;

struct HttpRequest {
  std::string method;
  std::string path;  // without query; "/" if there is none
  bool keep_alive = false;
  bool accepts_gzip = false;
};

struct HttpParsed {
  enum class State { kIncomplete, kComplete, kRefused };
  State state = State::kIncomplete;
  HttpRequest request;  // if kComplete
  size_t consumed = 0;  // if kComplete: the bytes of the request
  int refusal = 0;      // if kRefused: the status to answer; the connection ends then
};

// Reads the request at the beginning of `bytes`, which may hold less or more than one. Threads:
// any. Blocks: never. Refusals: 400 (not HTTP), 413 (it has a body), 431 (longer than
// kMaxHttpHeadBytes), 505 (another version of HTTP).
HttpParsed ParseHttpRequest(std::string_view bytes);

struct HttpResponseHead {
  int status = 200;
  std::string_view content_type;
  size_t content_length = 0;
  bool gzip = false;
  bool keep_alive = false;
  int keep_alive_seconds = 0;  // how long, and for how many more requests, it is kept alive
  int requests_left = 0;
};

// Everything in front of the body, the empty line included.
std::string FormatHttpHead(const HttpResponseHead& head);

// In the gzip format; empty if there is no memory for it. Blocks: computes, about 10 ms for each
// megabyte.
std::string Gzip(std::string_view text);

}  // namespace volumed
