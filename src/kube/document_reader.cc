#include "kube/document_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>

#include "base/strings.h"
#include "kube/tree_builder.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

std::string AtLine(size_t line, std::string_view reason) {
  return "line " + std::to_string(line) + ": " + std::string(reason);
}

// Takes nlohmann's events; its own tree builder keeps the last of two equal keys without a word.
class JsonEvents final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonEvents(TreeBuilder& builder) : builder_(builder) {}

  bool null() override { return builder_.Value(nullptr); }
  bool boolean(bool value) override { return builder_.Value(value); }
  bool number_integer(number_integer_t value) override { return builder_.Value(value); }
  bool number_unsigned(number_unsigned_t value) override { return builder_.Value(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return builder_.Value(value);
  }
  bool string(string_t& value) override { return builder_.Value(std::move(value)); }
  bool binary(binary_t&) override { return builder_.Fail("has a binary value"); }
  bool start_object(size_t) override { return builder_.StartMap(); }
  bool key(string_t& value) override { return builder_.Key(std::move(value)); }
  bool end_object() override { return builder_.End(); }
  bool start_array(size_t) override { return builder_.StartList(); }
  bool end_array() override { return builder_.End(); }
  // The library's own message quotes what it read last, which may be a secret.
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_position_ = position;
    return false;
  }

  size_t error_position() const { return error_position_; }

 private:
  TreeBuilder& builder_;
  size_t error_position_ = 0;
};

bool IsScalarTag(std::string_view tag) {
  return tag == "int" || tag == "bool" || tag == "float" || tag == "null";
}

// What Kubernetes' parser takes under an explicit tag; a whole number is a float too. It refuses
// "!!int 1.0", which is taken here.
// Source: go.yaml.in/yaml/v2@v2.4.2 resolve.go, observed through sigs.k8s.io/yaml@v1.6.0.
bool FitsTag(std::string_view tag, const Json& value) {
  if (tag == "bool") return value.is_boolean();
  if (tag == "null") return value.is_null();
  if (tag == "float") return value.is_number();
  return value.is_number_integer();
}

// Takes yaml-cpp's events of one document.
class YamlEvents final : public YAML::EventHandler {
 public:
  bool saw_document() const { return saw_document_; }
  size_t error_line() const { return line_; }  // from 0
  TreeBuilder& builder() { return builder_; }

  void OnDocumentStart(const YAML::Mark&) override { saw_document_ = true; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.ExpectsKey()) {
      Note(mark, builder_.Fail("has an empty key"));
    } else {
      Note(mark, builder_.Value(nullptr, anchor));
    }
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Note(mark, builder_.Alias(anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Note(mark, builder_.ExpectsKey() ? Key(tag, text) : Scalar(tag, anchor, text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Note(mark, builder_.StartList(anchor));
  }
  void OnSequenceEnd() override { builder_.End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Note(mark, builder_.StartMap(anchor));
  }
  void OnMapEnd() override { builder_.End(); }

 private:
  void Note(const YAML::Mark& mark, bool ok) {
    if (!ok && !std::exchange(failed_, true)) line_ = static_cast<size_t>(mark.line);
  }

  // nullopt with the builder's error set, for a tag or a value that JSON cannot hold.
  std::optional<Json> Resolve(const std::string& tag, const std::string& text) {
    constexpr std::string_view kCore = "tag:yaml.org,2002:";
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Json(text);  // "!": quoted
    const bool plain = tag.empty() || tag == "?";
    const std::optional<std::string_view> core = StripPrefix(tag, kCore);
    if (!plain && !(core && IsScalarTag(*core))) {
      builder_.Fail("has a YAML tag that is not supported");
      return std::nullopt;
    }
    std::optional<Json> value = ResolvePlainScalar(text);
    if (!value) {
      builder_.Fail("has an infinite number or .nan, which JSON cannot hold");
    } else if (!plain && !FitsTag(*core, *value)) {
      builder_.Fail("has a value that is not what its YAML tag !!" + std::string(*core) + " says");
      return std::nullopt;
    }
    return value;
  }

  bool Scalar(const std::string& tag, YAML::anchor_t anchor, const std::string& text) {
    std::optional<Json> value = Resolve(tag, text);
    return value && builder_.Value(*std::move(value), anchor);
  }

  // Keys become text as Go prints them: 1, true, 1.5.
  bool Key(const std::string& tag, const std::string& text) {
    if (text == "<<" && tag != "!") return builder_.MergeKey();
    const std::optional<Json> value = Resolve(tag, text);
    if (!value) return false;
    if (value->is_null()) return builder_.Fail("has an empty key");
    return builder_.Key(value->is_string() ? value->get<std::string>() : value->dump());
  }

  TreeBuilder builder_;
  bool saw_document_ = false;
  bool failed_ = false;
  size_t line_ = 0;
};

size_t CountLines(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A part of a file between two "---" lines.
struct Chunk {
  std::string_view text;
  size_t first_line = 1;
};

bool IsMarker(std::string_view line) {
  return line.substr(0, 3) == "---" &&
         (line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
}

// Calls visit(line without its newline, offset of the line).
template <typename Visit>
void ForEachLine(std::string_view text, Visit visit) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    visit(text.substr(at, end - at), at);
    at = end + 1;
  }
}

std::vector<Chunk> CutAtMarkers(std::string_view bytes) {
  std::vector<Chunk> chunks;
  size_t begin = 0;
  size_t begin_line = 1;
  size_t line_number = 0;
  ForEachLine(bytes, [&](std::string_view line, size_t at) {
    ++line_number;
    if (!IsMarker(line) || at == begin) return;
    chunks.push_back({bytes.substr(begin, at - begin), begin_line});
    begin = at;
    begin_line = line_number;
  });
  chunks.push_back({bytes.substr(begin), begin_line});
  return chunks;
}

// Nothing but blanks, comments, directives and document marks.
bool IsBlank(std::string_view text) {
  bool blank = true;
  ForEachLine(text, [&blank](std::string_view line, size_t) {
    if (IsMarker(line)) line.remove_prefix(3);
    if (line.substr(0, 3) == "...") line.remove_prefix(3);
    const std::string_view rest = TrimSpace(line);
    if (!rest.empty() && rest.front() != '#' && rest.front() != '%') blank = false;
  });
  return blank;
}

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
}

RawDocument ReadJson(std::string_view text, size_t first_line, bool& is_syntax_error) {
  TreeBuilder builder;
  JsonEvents events(builder);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &events);
  is_syntax_error = !parsed && builder.error().empty();
  if (!builder.error().empty()) return {std::nullopt, builder.error()};
  if (!parsed) {
    const size_t position = std::min(events.error_position(), text.size());
    return {std::nullopt,
            AtLine(first_line + CountLines(text.substr(0, position)), "is not valid JSON")};
  }
  return {builder.Take(), ""};
}

size_t CountEndMarks(std::string_view text) {
  size_t marks = 0;
  ForEachLine(text, [&marks](std::string_view line, size_t) {
    if (line.substr(0, 3) == "...") ++marks;
  });
  return marks;
}

// A "..." line may put a second document into one chunk.
void ReadYaml(const Chunk& chunk, std::vector<RawDocument>& documents) {
  if (HasControlCharacter(chunk.text)) {
    // yaml-cpp takes one of them for the end of the file and would drop what follows.
    documents.push_back({std::nullopt, AtLine(chunk.first_line, "has a control character")});
    return;
  }
  const size_t documents_before = documents.size();
  const size_t most = CountEndMarks(chunk.text) + 1;
  try {
    std::istringstream stream{std::string(chunk.text)};
    YAML::Parser parser(stream);
    for (size_t count = 0;; ++count) {
      YamlEvents events;
      const bool more = parser.HandleNextDocument(events);
      if (!more || !events.saw_document()) return;
      // Before a stray "]" or "}" yaml-cpp reports one empty document after the other, for ever.
      if (count == most) {
        documents.resize(documents_before);
        documents.push_back({std::nullopt, AtLine(chunk.first_line,
                                                  "begins a document that is not valid YAML: there "
                                                  "is something behind its end")});
        return;
      }
      if (!events.builder().error().empty()) {
        documents.push_back({std::nullopt, AtLine(chunk.first_line + events.error_line(),
                                                  events.builder().error())});
        return;
      }
      std::optional<Json> value = events.builder().Take();
      if (value && !value->is_null()) documents.push_back({std::move(value), ""});
    }
  } catch (const YAML::Exception& exception) {
    const size_t line = exception.mark.line < 0 ? 0 : static_cast<size_t>(exception.mark.line);
    documents.push_back(
        {std::nullopt, AtLine(chunk.first_line + line, "is not valid YAML: " + exception.msg)});
  }
}

void ReadChunk(const Chunk& chunk, std::vector<RawDocument>& documents) {
  std::string_view body = chunk.text;
  if (IsMarker(body.substr(0, std::min(body.find('\n'), body.size())))) body.remove_prefix(3);
  body = TrimSpace(body);
  if (!body.empty() && body.front() == '{') {
    const size_t skipped = static_cast<size_t>(body.data() - chunk.text.data());
    bool is_syntax_error = false;
    RawDocument document = ReadJson(
        body, chunk.first_line + CountLines(chunk.text.substr(0, skipped)), is_syntax_error);
    if (!is_syntax_error) {
      documents.push_back(std::move(document));
      return;
    }
  }
  ReadYaml(chunk, documents);
}

}  // namespace

std::vector<RawDocument> ReadDocuments(std::string_view bytes) {
  if (const auto rest = StripPrefix(bytes, "\xEF\xBB\xBF")) bytes = *rest;  // byte order mark
  if (!IsUtf8(bytes)) return {{std::nullopt, "is not UTF-8"}};
  std::vector<RawDocument> documents;
  for (const Chunk& chunk : CutAtMarkers(bytes)) {
    if (!IsBlank(chunk.text)) ReadChunk(chunk, documents);
  }
  return documents;
}

bool IsUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || at + length > bytes.size()) {
      return false;
    }
    uint32_t code = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(bytes[at + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return false;
    at += length;
  }
  return true;
}

}  // namespace volumed
