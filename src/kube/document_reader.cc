#include "kube/document_reader.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/tree_builder.h"
#include "kube/yaml_documents.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

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
  ReadYaml(chunk.text, chunk.first_line, documents);
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

}  // namespace volumed
