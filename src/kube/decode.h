// Decodes manifests into objects and encodes objects: JSON or YAML, several documents in a file,
// kind List.
//
// A wrong document never hides another: each is decoded alone, and a problem names the file, the
// document, the field path and the reason. An unknown field is ignored, as an API server ignores
// it, and becomes a warning.
// Threads: any. Blocks: no. Errors: what is wrong with a manifest is told as DecodeProblems; only
// PutIntoNamespace() returns a Status.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Limits against files that are broken or made to do harm.
inline constexpr size_t kMaxManifestBytes = 10 * 1024 * 1024;
// Maps and lists within each other.
inline constexpr int kMaxManifestDepth = 64;
// The limit for the JSON values of one document after its YAML aliases are expanded ("billion
// laughs").
inline constexpr size_t kMaxManifestNodes = 500'000;
// Further problems of a document are only counted: one broken file must not fill a log.
inline constexpr size_t kMaxProblemsPerDocument = 100;

// One thing that is wrong with a manifest, or a warning; also one thing that is wrong with a source
// as a whole.
struct DecodeProblem {
  std::string file;  // as it was given; "" when the problem is of a whole source
  // The document in the file, from 0; -1 for the file as a whole. Documents without content are not
  // counted.
  int document = -1;
  std::string object;      // "Pod default/web"; "" as long as that is unknown
  std::string field_path;  // "spec.volumes[2].secret.items[0].mode"; "" for the whole document
  std::string reason;      // never holds a value of a secret
  // The document is an object of a kind that this program does not use (a Service). It hides no
  // object of a known kind, so its file is in order.
  bool is_of_other_kind = false;
  // Nothing is wrong: the object waits for something, and comes without anybody's help.
  bool is_waiting = false;

  // "web.yaml: document 2: Pod default/web: spec.volumes[0].name: must not be empty"; the shown
  // number of a document begins with 1.
  std::string ToString() const;
  friend bool operator==(const DecodeProblem&, const DecodeProblem&) = default;
};

// An object that keeps all rules that were asked for.
struct DecodedObject {
  Object object;
  int document = 0;              // as in DecodeProblem
  bool names_namespace = false;  // metadata.namespace is there; else it is "default"
};

// What a file has. Objects of one name are all among `objects`: who uses them decides between them.
struct ManifestDecode {
  std::vector<DecodedObject> objects;
  std::vector<DecodeProblem> problems;
  // What was accepted but perhaps not meant so: unknown fields.
  std::vector<DecodeProblem> warnings = {};
  // How many documents have content. 0: the file is empty or has comments only. That differs from a
  // file that lists no object (kind List without items).
  int documents = 0;
};

// Which rules an object has to keep.
enum class DecodeRules {
  // For an object that somebody gives: all of them.
  kAtTheDoor,
  // For an object that was accepted before: a text, alone or in a list, that breaks a rule is kept
  // as it is, unless its rule is kUid, kDnsLabel or kDnsSubdomain (kube/value_rules.h), since such
  // a text becomes the name of a directory; rules about several fields are not checked. Types,
  // ranges of numbers, enum values, and the keys and values of maps are checked all the same.
  kStored,
};

// `file` is used for messages only. A document that begins with '{' is first read as JSON. Other
// documents, and those that are not JSON, are read as YAML with the scalar rules of
// sigs.k8s.io/yaml (yes/no/on/off are booleans, 0644 is octal). If the file is larger than
// kMaxManifestBytes, the result has one problem and nothing else.
ManifestDecode DecodeManifest(std::string_view file, std::string_view bytes,
                              DecodeRules rules = DecodeRules::kAtTheDoor);

// Puts an object that names no namespace into `name_space`, as `kubectl -n` does; a kind without
// namespaces stays as it is. Errors: InvalidArgument (not applied), in kubectl's words, if the
// object names another one, or if `name_space` is no namespace's name. Source: kubernetes
// cli-runtime pkg/resource/visitor.go@v1.36.2 (RequireNamespace).
Status PutIntoNamespace(const std::string& name_space, DecodedObject& decoded);

enum class SecretEncoding {
  kWithhold,     // every value is replaced by "<withheld>", which no decoder accepts
  kWithSecrets,  // for the agent's own object directory (0700) and nothing else
};

// One line of JSON with sorted keys; fields with their zero or default value may be left out.
// DecodeManifest() of a kWithSecrets text yields an equal object.
std::string EncodeObjectJson(const Object& object,
                             SecretEncoding secrets = SecretEncoding::kWithhold);

}  // namespace volumed
