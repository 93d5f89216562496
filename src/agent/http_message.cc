#include "agent/http_message.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";
constexpr int kGzipWindow = MAX_WBITS + 16;  // + 16: the gzip format

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kTokenMarks.find(c) != std::string_view::npos;
  });
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

HttpParsed Refuse(int status) {
  HttpParsed parsed;
  parsed.state = HttpParsed::State::kRefused;
  parsed.refusal = status;
  return parsed;
}

// Takes the next line from `rest`, without its end: CR LF, or LF alone, which RFC 9112 section 2.2
// allows. nullopt if there is no whole line.
std::optional<std::string_view> TakeLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Takes the part before `separator` from `rest`, together with the separator; all of `rest` if
// there is no separator.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

// The path of "/metrics?x=y" and of "http://host:1/metrics"; nullopt for any other form.
std::optional<std::string_view> PathOf(std::string_view target) {
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) return std::nullopt;
    target.remove_prefix(scheme + 3);
    const size_t path = target.find_first_of("/?");
    if (path == std::string_view::npos || target[path] == '?') return "/";
    target.remove_prefix(path);
  }
  return target.substr(0, target.find('?'));
}

// 0, or the status that refuses the line. Source: RFC 9112 section 3.
int ReadRequestLine(std::string_view line, HttpRequest& request) {
  const std::string_view method = TakeUntil(line, ' ');
  const std::string_view target = TakeUntil(line, ' ');
  if (!IsToken(method) || target.empty() || !IsVisible(target)) return 400;
  if (!line.starts_with("HTTP/")) return 400;
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return 505;
  // An OPTIONS request for "*" has no path, and gets no answer of its own either.
  const std::optional<std::string_view> path = target == "*" ? target : PathOf(target);
  if (!path) return 400;
  request.method = std::string(method);
  request.path = std::string(*path);
  request.keep_alive = line == "HTTP/1.1";
  return 0;
}

// "gzip;q=0" says that gzip is not accepted. Source: RFC 9110 section 12.5.3.
bool AcceptsGzip(std::string_view value) {
  while (!value.empty()) {
    std::string_view element = TakeUntil(value, ',');
    const std::string_view coding = TrimSpace(TakeUntil(element, ';'));
    if (!SameWord(coding, "gzip")) continue;
    const std::string_view weight = TrimSpace(element);
    const bool is_zero = (weight.starts_with("q=0") || weight.starts_with("Q=0")) &&
                         weight.find_first_of("123456789", 3) == std::string_view::npos;
    return !is_zero;
  }
  return false;
}

// 0, or the status that refuses the line.
int ReadHeaderLine(std::string_view line, HttpRequest& request) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return 400;
  const std::string_view name = line.substr(0, colon);
  std::string_view value = TrimSpace(line.substr(colon + 1));
  if (SameWord(name, "Transfer-Encoding")) return 413;
  if (SameWord(name, "Content-Length")) {
    if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) {
      return 400;
    }
    return value.find_first_not_of('0') == std::string_view::npos ? 0 : 413;
  }
  if (SameWord(name, "Connection")) {
    while (!value.empty()) {
      const std::string_view option = TrimSpace(TakeUntil(value, ','));
      if (SameWord(option, "close")) request.keep_alive = false;
      if (SameWord(option, "keep-alive")) request.keep_alive = true;
    }
  }
  if (SameWord(name, "Accept-Encoding")) request.accepts_gzip |= AcceptsGzip(value);
  return 0;
}

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace

HttpParsed ParseHttpRequest(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kMaxHttpHeadBytes);
  std::string_view rest = head;
  HttpParsed parsed;
  bool first = true;
  while (const std::optional<std::string_view> line = TakeLine(rest)) {
    if (first && line->empty()) continue;  // left by the request before. Source: RFC 9112 2.2
    const bool ends = line->empty();
    if (ends) {
      parsed.state = HttpParsed::State::kComplete;
      parsed.consumed = head.size() - rest.size();
      return parsed;
    }
    const int refusal =
        first ? ReadRequestLine(*line, parsed.request) : ReadHeaderLine(*line, parsed.request);
    if (refusal != 0) return Refuse(refusal);
    first = false;
  }
  if (bytes.size() >= kMaxHttpHeadBytes) return Refuse(431);
  return {};
}

std::string FormatHttpHead(const HttpResponseHead& head) {
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text += ReasonOf(head.status);
  text += "\r\nContent-Type: ";
  text += head.content_type;
  text += "\r\nContent-Length: " + std::to_string(head.content_length) + "\r\n";
  if (head.gzip) text += "Content-Encoding: gzip\r\n";
  if (head.status == 405) text += "Allow: GET, HEAD\r\n";
  if (head.keep_alive) {
    text +=
        "Connection: keep-alive\r\nKeep-Alive: timeout=" + std::to_string(head.keep_alive_seconds) +
        ", max=" + std::to_string(head.requests_left) + "\r\n";
  } else {
    text += "Connection: close\r\n";
  }
  return text + "\r\n";
}

std::string Gzip(std::string_view text) {
  z_stream stream{};
  // Text of this kind shrinks to a tenth at any level; the cheapest level holds up the server
  // least.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, MAX_MEM_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace volumed
