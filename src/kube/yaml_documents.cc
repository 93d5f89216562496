// libyaml's events, for Kubernetes' own parser is a port of it: what one takes, the other takes.
#include "kube/yaml_documents.h"

#include <yaml.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/strings.h"
#include "kube/tree_builder.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kCoreTags = "tag:yaml.org,2002:";

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

std::string_view ViewOf(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

// One event of the parser, which owns its texts.
class Event {
 public:
  Event() = default;
  ~Event() { yaml_event_delete(&event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  yaml_event_t* get() { return &event_; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_ = {};
};

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : text_(text) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~YamlReader() { yaml_parser_delete(&parser_); }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  // False: there is an error.
  bool Read(std::vector<Json>& documents) {
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser_, event.get()) == 0) return FailSyntax();
      if (event->type == YAML_STREAM_END_EVENT) return true;
      if (event->type == YAML_DOCUMENT_END_EVENT) {
        std::optional<Json> value = builder_.Take();
        if (value && !value->is_null()) documents.push_back(*std::move(value));
      } else if (!Take(event)) {
        line_ = event->start_mark.line;
        if (error_.empty()) error_ = builder_.error();
        return false;
      }
    }
  }

  size_t error_line() const { return line_; }  // from 0
  const std::string& error() const { return error_; }

 private:
  // The library's texts quote nothing of the document.
  bool FailSyntax() {
    if (parser_.error == YAML_READER_ERROR) {
      // It tells no line of one; what is no UTF-8 does not come here.
      const std::string_view before = text_.substr(0, parser_.problem_offset);
      line_ = static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
      error_ = "has a control character";
      return false;
    }
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    line_ = parser_.problem_mark.line;
    const std::string problem = parser_.problem == nullptr ? "" : parser_.problem;
    const std::string context = parser_.context == nullptr ? "" : parser_.context;
    error_ = "is not valid YAML: " + (context.empty() ? problem : context + ", " + problem);
    return false;
  }

  bool Take(const Event& event) {
    switch (event->type) {
      case YAML_DOCUMENT_START_EVENT:
        builder_ = TreeBuilder();
        anchors_.clear();
        return true;
      case YAML_ALIAS_EVENT: {
        const auto anchor = anchors_.find(ViewOf(event->data.alias.anchor));
        if (anchor != anchors_.end()) return builder_.Alias(anchor->second);
        error_ = "is not valid YAML: an alias to an anchor that is not there";
        return false;
      }
      case YAML_SCALAR_EVENT:
        return builder_.ExpectsKey() ? Key(event) : Scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return builder_.StartList(NewAnchor(event->data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT:
        return builder_.StartMap(NewAnchor(event->data.mapping_start.anchor));
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return builder_.End();
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    __builtin_unreachable();
  }

  TreeBuilder::Anchor NewAnchor(const yaml_char_t* name) {
    if (name == nullptr) return 0;
    return anchors_[std::string(ViewOf(name))] = ++last_anchor_;
  }

  // nullopt with the builder's error set, for a tag or a value that JSON cannot hold.
  std::optional<Json> Resolve(const Event& event) {
    const auto& scalar = event->data.scalar;
    std::string text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const std::string_view tag = ViewOf(scalar.tag);
    const std::optional<std::string_view> core = StripPrefix(tag, kCoreTags);
    const bool is_quoted = tag.empty() && scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (is_quoted || tag == "!" || core == "str") return Json(std::move(text));
    if (!tag.empty() && !(core && IsScalarTag(*core))) {
      builder_.Fail("has a YAML tag that is not supported");
      return std::nullopt;
    }
    std::optional<Json> value = ResolvePlainScalar(text);
    if (!value) {
      builder_.Fail("has an infinite number or .nan, which JSON cannot hold");
    } else if (!tag.empty() && !FitsTag(*core, *value)) {
      builder_.Fail("has a value that is not what its YAML tag !!" + std::string(*core) + " says");
      return std::nullopt;
    }
    return value;
  }

  bool Scalar(const Event& event) {
    const TreeBuilder::Anchor anchor = NewAnchor(event->data.scalar.anchor);
    std::optional<Json> value = Resolve(event);
    return value && builder_.Value(*std::move(value), anchor);
  }

  // Keys become text as Go prints them: 1, true, 1.5.
  bool Key(const Event& event) {
    const auto& scalar = event->data.scalar;
    const bool is_plain = scalar.tag == nullptr && scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_plain && ViewOf(scalar.value) == "<<") return builder_.MergeKey();
    std::optional<Json> value = Resolve(event);
    if (!value) return false;
    if (value->is_null()) return builder_.Fail("has an empty key");
    return builder_.Key(value->is_string() ? std::move(value->get_ref<std::string&>())
                                           : value->dump());
  }

  const std::string_view text_;
  yaml_parser_t parser_ = {};
  TreeBuilder builder_;
  std::map<std::string, TreeBuilder::Anchor, std::less<>> anchors_;
  TreeBuilder::Anchor last_anchor_ = 0;
  size_t line_ = 0;
  std::string error_;
};

}  // namespace

std::string AtLine(size_t line, std::string_view reason) {
  return "line " + std::to_string(line) + ": " + std::string(reason);
}

void ReadYaml(std::string_view text, size_t first_line, std::vector<RawDocument>& documents) {
  YamlReader reader(text);
  std::vector<Json> values;
  if (!reader.Read(values)) {
    documents.push_back({std::nullopt, AtLine(first_line + reader.error_line(), reader.error())});
    return;
  }
  for (Json& value : values) documents.push_back({std::move(value), ""});
}

}  // namespace volumed
