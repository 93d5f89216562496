#include "agent/http_message.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>

namespace volumed {
namespace {

using State = HttpParsed::State;

HttpRequest Parsed(const std::string& text) {
  const HttpParsed parsed = ParseHttpRequest(text);
  EXPECT_EQ(parsed.state, State::kComplete) << text;
  EXPECT_EQ(parsed.consumed, text.size()) << text;
  return parsed.request;
}

int Refusal(const std::string& text) {
  const HttpParsed parsed = ParseHttpRequest(text);
  return parsed.state == State::kRefused ? parsed.refusal : 0;
}

std::string WithHeader(const std::string& line) { return "GET / HTTP/1.1\r\n" + line + "\r\n\r\n"; }

TEST(HttpMessageTest, APrometheusRequestIsRead) {
  const HttpRequest request = Parsed(
      "GET /metrics?debug=1 HTTP/1.1\r\nHost: 127.0.0.1:9788\r\nUser-Agent: Prometheus/2.42.0\r\n"
      "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n"
      "Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_TRUE(request.accepts_gzip);
}

TEST(HttpMessageTest, ARequestIsCompleteWithItsEmptyLineAndNotBefore) {
  const std::string text = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(ParseHttpRequest(text.substr(0, size)).state, State::kIncomplete) << size;
  }
  // What follows is the next request's.
  EXPECT_EQ(ParseHttpRequest(text + "GET ").consumed, text.size());
  EXPECT_EQ(Parsed("\r\nGET /a HTTP/1.0\n\n").path, "/a");
}

TEST(HttpMessageTest, AConnectionIsKeptAsTheVersionAndTheClientSay) {
  EXPECT_TRUE(Parsed("GET / HTTP/1.1\r\n\r\n").keep_alive);
  EXPECT_FALSE(Parsed("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_FALSE(Parsed(WithHeader("connection: x, Close")).keep_alive);
  EXPECT_TRUE(Parsed("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
}

TEST(HttpMessageTest, GzipIsWhatTheClientAsksFor) {
  EXPECT_TRUE(Parsed(WithHeader("Accept-Encoding: deflate, gzip;q=0.5")).accepts_gzip);
  EXPECT_FALSE(Parsed(WithHeader("Accept-Encoding: deflate, br")).accepts_gzip);
  EXPECT_FALSE(Parsed(WithHeader("Accept-Encoding: gzip;q=0")).accepts_gzip);
  EXPECT_FALSE(Parsed(WithHeader("Accept-Encoding: gzip; q=0.000")).accepts_gzip);
  EXPECT_FALSE(Parsed(WithHeader("Accept-Encoding:")).accepts_gzip);
}

TEST(HttpMessageTest, TheTargetMayBeAbsolute) {
  EXPECT_EQ(Parsed("GET http://host:9788/metrics?x HTTP/1.1\r\n\r\n").path, "/metrics");
  EXPECT_EQ(Parsed("GET http://host HTTP/1.1\r\n\r\n").path, "/");
  EXPECT_EQ(Parsed("GET http://host?x=/metrics HTTP/1.1\r\n\r\n").path, "/");
  EXPECT_EQ(Parsed("OPTIONS * HTTP/1.1\r\n\r\n").path, "*");
}

TEST(HttpMessageTest, WhatIsNoRequestIsRefused) {
  EXPECT_EQ(Refusal("\x16\x03\x01\x02\n"), 400);  // TLS
  EXPECT_EQ(Refusal("GET\r\n"), 400);
  EXPECT_EQ(Refusal("GET metrics HTTP/1.1\r\n"), 400);
  EXPECT_EQ(Refusal("G(T / HTTP/1.1\r\n"), 400);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nno colon\r\n"), 400);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\n folded: x\r\n"), 400);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nContent-Length: -1\r\n"), 400);
  EXPECT_EQ(Refusal("PRI * HTTP/2.0\r\n"), 505);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nContent-Length: 1\r\n"), 413);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"), 413);
  EXPECT_EQ(Parsed(WithHeader("Content-Length: 0")).path, "/");
}

TEST(HttpMessageTest, ALongHeadIsRefusedWhateverItConsistsOf) {
  const std::string begin = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(Refusal("GET /" + std::string(kMaxHttpHeadBytes, 'a')), 431);
  EXPECT_EQ(Refusal(begin + "X: " + std::string(kMaxHttpHeadBytes, 'a') + "\r\n\r\n"), 431);
  std::string many = begin;
  while (many.size() < kMaxHttpHeadBytes) many += "a: b\r\n";
  EXPECT_EQ(Refusal(many + "\r\n"), 431);
  EXPECT_EQ(Refusal(std::string(kMaxHttpHeadBytes, '\n')), 431);
}

// Each byte string is parsed at every length: whatever is complete stays complete with more bytes
// behind it, and nothing is ever consumed that is not there.
TEST(HttpMessageTest, TenThousandMangledRequestsAreReadTheSameAtEveryCut) {
  const std::string seed =
      "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br, gzip;q=0.3\r\n"
      "Connection: keep-alive\r\nContent-Length: 0\r\n\r\nGET /readyz HTTP/1.0\r\n\r\n";
  const std::string marks(
      "\r\n :;,=/?*\0\x7f\xff"
      "0Gg",
      16);
  std::mt19937 random(20240501);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  int complete = 0;
  int refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string text = seed;
    for (size_t change = below(6); change > 0; --change) {
      const size_t at = below(text.size());
      switch (below(3)) {
        case 0:
          text[at] = marks[below(marks.size())];
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        default:
          text.insert(at, 1 + below(4), marks[below(marks.size())]);
          break;
      }
      if (text.empty()) text = "G";
    }
    State last = State::kIncomplete;
    size_t consumed = 0;
    for (size_t size = 0; size <= text.size(); ++size) {
      const HttpParsed parsed = ParseHttpRequest(std::string_view(text).substr(0, size));
      if (last != State::kIncomplete) {
        ASSERT_EQ(parsed.state, last) << text;
        ASSERT_EQ(parsed.consumed, consumed) << text;
      }
      ASSERT_LE(parsed.consumed, size) << text;
      last = parsed.state;
      consumed = parsed.consumed;
    }
    complete += last == State::kComplete ? 1 : 0;
    refused += last == State::kRefused ? 1 : 0;
  }
  EXPECT_GT(complete, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(HttpMessageTest, AHeadSaysWhatFollowsAndWhatBecomesOfTheConnection) {
  HttpResponseHead head;
  head.content_type = "text/plain";
  head.content_length = 3;
  EXPECT_EQ(FormatHttpHead(head),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\n");
  head.status = 405;
  head.gzip = true;
  head.keep_alive = true;
  head.keep_alive_seconds = 5;
  head.requests_left = 99;
  EXPECT_EQ(FormatHttpHead(head),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Content-Encoding: gzip\r\nAllow: GET, HEAD\r\nConnection: keep-alive\r\n"
            "Keep-Alive: timeout=5, max=99\r\n\r\n");
}

TEST(HttpMessageTest, GzipGivesTheTextBack) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "volumed_pods{phase=\"" + std::to_string(i) + "\"} 1\n";
  const std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), text.size() / 4);
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string out(text.size() + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  EXPECT_EQ(out, text);
}

}  // namespace
}  // namespace volumed
