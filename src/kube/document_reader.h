// Splits the bytes of a manifest into documents and parses each into a JSON value. This file knows
// nothing of Kubernetes' kinds. For use in .cc files of kube/ only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// One document: its value, or the reason why it has none.
struct RawDocument {
  std::optional<nlohmann::json> value;
  std::string error;  // "line 3: ..."; never holds text of the document
};

// Leaves out documents that are empty or have comments only. A broken document does not hide the
// ones after it: documents are separated at lines that begin with "---" before they are parsed.
// Threads: any. Blocks: no. Errors: in each document.
std::vector<RawDocument> ReadDocuments(std::string_view bytes);

// What a plain (unquoted) YAML scalar means, by the rules of sigs.k8s.io/yaml: YAML 1.1 booleans
// ("yes", "off", "n"), octal "0644" and "0o644", hexadecimal, binary, "_" inside numbers. Anything
// else is a string, dates too. nullopt for infinities and not-a-number, which JSON lacks.
// Source: sigs.k8s.io/yaml@v1.6.0 on go.yaml.in/yaml/v2@v2.4.2 (resolve.go); the tests' values are
// what that pair prints.
std::optional<nlohmann::json> ResolvePlainScalar(const std::string& text);

}  // namespace volumed
