// Bytes of a manifest to JSON values, one for each document. Knows nothing of Kubernetes' kinds.
// For use in .cc files of kube/ only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// One document: a value, or the reason why there is none.
struct RawDocument {
  std::optional<nlohmann::json> value;
  std::string error;  // "line 3: ..."; never holds text of the document
};

// Empty documents and those with comments only are left out. A broken document does not hide those
// behind it: documents are cut at lines that begin with "---" before they are parsed.
// Threads: any. Blocks: no. Errors: in each document.
std::vector<RawDocument> ReadDocuments(std::string_view bytes);

// What a plain (unquoted) YAML scalar means, by the rules of sigs.k8s.io/yaml: YAML 1.1 booleans
// ("yes", "off", "n"), octal "0644" and "0o644", hexadecimal, binary, "_" inside numbers. Anything
// else is a string, dates too. nullopt for infinities and not-a-number, which JSON lacks.
// Source: sigs.k8s.io/yaml@v1.6.0 on go.yaml.in/yaml/v2@v2.4.2 (resolve.go); the tests' values are
// what that pair prints.
std::optional<nlohmann::json> ResolvePlainScalar(const std::string& text);

// True for text that is UTF-8 without surrogates and overlong forms.
bool IsUtf8(std::string_view bytes);

}  // namespace volumed
