// Splits the bytes of a manifest into documents and parses each into a JSON value. This file knows
// nothing of Kubernetes' kinds. For use in .cc files of kube/ only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// One document: its value, or the reason why it has none. The reason begins with "line 3: ", unless
// the text is not UTF-8, or a JSON document breaks a limit or has a key twice. It quotes nothing of
// the document but a key that a map has twice, and that only if the key could be one of a
// ConfigMap: any other text may be a secret that stands where a key belongs.
struct RawDocument {
  std::optional<nlohmann::json> value;
  // "" if there is a value.
  std::string error;
};

// Leaves out documents that are empty or have comments only. A broken document does not hide the
// ones after it: documents are separated at lines that begin with "---" before they are parsed. A
// byte order mark at the front is skipped. Bytes that are not UTF-8 are one document with an error.
// The limits for each document are those of kube/decode.h.
// Threads: any. Blocks: no. Errors: in each document.
std::vector<RawDocument> ReadDocuments(std::string_view bytes);

// What a plain (unquoted) YAML scalar means, by the rules of sigs.k8s.io/yaml: YAML 1.1 booleans
// ("yes", "off", "n"), octal "0644" and "0o644", hexadecimal, binary, "_" inside numbers. Anything
// else is a string, dates too. A float without a fraction is an integer: "1e3" is 1000. The result
// is nullopt for infinities and not-a-number, which JSON lacks.
// Source: sigs.k8s.io/yaml@v1.6.0 on go.yaml.in/yaml/v2@v2.4.2 (resolve.go).
std::optional<nlohmann::json> ResolvePlainScalar(const std::string& text);

}  // namespace volumed
