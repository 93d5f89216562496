// A file of manifests. What is taken is written and read again as the same object, no name in it
// leads out of a directory, what is refused says why, and nothing in a file hides what is behind
// it.
#include <algorithm>

#include "base/printable_text.h"
#include "fuzz/fuzz.h"
#include "kube/decode.h"
#include "kube/stored_object.h"

namespace volumed::manifest_fuzz {
namespace {

constexpr size_t kMaxBytesForNext = 2048;  // so that the second decoding does not halve the speed
constexpr const char* kNext =
    "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: behind-it}}\n";

// What becomes the name of a directory.
void CheckPodNames(const Pod& pod) {
  FUZZ_CHECK(pod.metadata.uid.empty() || fuzz::IsPathElement(pod.metadata.uid));
  for (const PodVolume& volume : pod.spec.volumes) FUZZ_CHECK(fuzz::IsPathElement(volume.name));
  for (const auto* containers :
       {&pod.spec.containers, &pod.spec.init_containers, &pod.spec.ephemeral_containers}) {
    for (const Container& container : *containers) {
      FUZZ_CHECK(fuzz::IsPathElement(container.name));
    }
  }
}

void CheckNames(const Object& object) {
  const ObjectMeta& meta = MetaOf(object);
  FUZZ_CHECK(fuzz::IsPathElement(meta.name));
  FUZZ_CHECK(meta.name_space.empty() == IsClusterScoped(KindOf(object)));
  FUZZ_CHECK(meta.name_space.empty() || fuzz::IsPathElement(meta.name_space));
  if (const Pod* pod = std::get_if<Pod>(&object)) CheckPodNames(*pod);
}

// A field that is kept as its JSON (dataSourceRef) keeps what was warned of in it.
void CheckWrittenAgain(const Object& object, DecodeRules rules, bool had_warnings) {
  const std::string json = EncodeObjectJson(object, SecretEncoding::kWithSecrets);
  FUZZ_CHECK(json.find('\n') == std::string::npos);
  const ManifestDecode again = DecodeManifest("again", json, rules);
  FUZZ_CHECK(again.problems.empty());
  FUZZ_CHECK(again.warnings.empty() || had_warnings);
  FUZZ_CHECK(again.objects.size() == 1);
  FUZZ_CHECK(again.objects[0].object == object);

  const StoredObject stored{object, 7, "1.2.3"};
  const Result<StoredObject> read = DecodeStoredObject("stored", EncodeStoredObject(stored));
  FUZZ_CHECK(read.ok());
  FUZZ_CHECK(read->object == object && read->number == stored.number);
  FUZZ_CHECK(read->written_by == stored.written_by);
}

void CheckWithheld(const Object& object) {
  const SecretObject* const secret = std::get_if<SecretObject>(&object);
  if (secret == nullptr || secret->data.empty()) return;
  FUZZ_CHECK(!DecodeManifest("withheld", EncodeObjectJson(object)).problems.empty());
}

void CheckProblem(const DecodeProblem& problem) {
  FUZZ_CHECK(!problem.reason.empty());
  FUZZ_CHECK(problem.ToString().find(problem.reason) != std::string::npos);
}

void CheckDecoded(const ManifestDecode& decoded, DecodeRules rules) {
  FUZZ_CHECK(decoded.documents >= 0);
  FUZZ_CHECK(decoded.documents > 0 || decoded.objects.empty());
  std::for_each(decoded.problems.begin(), decoded.problems.end(), CheckProblem);
  std::for_each(decoded.warnings.begin(), decoded.warnings.end(), CheckProblem);
  for (const DecodedObject& one : decoded.objects) {
    FUZZ_CHECK(one.document >= 0 && one.document < decoded.documents);
    CheckNames(one.object);
    CheckWrittenAgain(one.object, rules, !decoded.warnings.empty());
    CheckWithheld(one.object);
  }
}

// A document does not hide the next one, whatever is wrong with it; a file that is no text does.
void CheckNext(std::string_view bytes, const ManifestDecode& alone) {
  if (bytes.size() > kMaxBytesForNext || !IsUtf8(bytes)) return;
  const ManifestDecode both = DecodeManifest("both", std::string(bytes) + kNext);
  FUZZ_CHECK(!both.objects.empty());
  FUZZ_CHECK(MetaOf(both.objects.back().object).name == "behind-it");
  FUZZ_CHECK(both.objects.size() == alone.objects.size() + 1);
}

}  // namespace

FUZZ_TARGET(manifest)(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::TextOf(data, size);
  const ManifestDecode decoded = DecodeManifest("manifest", bytes);
  CheckDecoded(decoded, DecodeRules::kAtTheDoor);
  CheckDecoded(DecodeManifest("manifest", bytes, DecodeRules::kStored), DecodeRules::kStored);
  CheckNext(bytes, decoded);
  return 0;
}

}  // namespace volumed::manifest_fuzz
