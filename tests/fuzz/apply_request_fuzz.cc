// Bytes of the control API's ApplyRequest, and what the agent makes of them before it asks anybody
// else: objects in the wanted namespace, as they are stored and as a later agent reads them.
#include "agent.pb.h"
#include "fuzz/fuzz.h"
#include "kube/decode.h"
#include "kube/prepare_for_create.h"
#include "kube/stored_object.h"

namespace volumed::apply_request_fuzz {
namespace {

void CheckStored(const Object& object) {
  const Result<StoredObject> stored =
      DecodeStoredObject("object", EncodeStoredObject({object, 1, "1.2.3"}));
  FUZZ_CHECK(stored.ok());
  FUZZ_CHECK(stored->object == object);
}

void CheckApplied(const std::string& name_space, DecodedObject& decoded) {
  const Status placed = name_space.empty() ? OkStatus() : PutIntoNamespace(name_space, decoded);
  if (!placed.ok()) return fuzz::CheckError(placed.error());
  const ObjectMeta& meta = MetaOf(decoded.object);
  const bool has_namespace = !IsClusterScoped(KindOf(decoded.object));
  FUZZ_CHECK(has_namespace || meta.name_space.empty());
  if (has_namespace && !name_space.empty()) FUZZ_CHECK(meta.name_space == name_space);
  PrepareForCreate(decoded.object);
  FUZZ_CHECK(!meta.deletion_unix_millis && !meta.creation_unix_millis);
  // The namespace is the caller's word: only a name that PutIntoNamespace() lets through may be
  // stored.
  CheckStored(decoded.object);
  Object again = decoded.object;
  PrepareForCreate(again);
  FUZZ_CHECK(again == decoded.object);
}

}  // namespace

FUZZ_TARGET(apply_request)(const uint8_t* data, size_t size) {
  v1::ApplyRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  ManifestDecode decoded = DecodeManifest(request.file(), request.manifest());
  for (const DecodeProblem& problem : decoded.problems) FUZZ_CHECK(!problem.reason.empty());
  for (DecodedObject& one : decoded.objects) CheckApplied(request.namespace_(), one);
  return 0;
}

}  // namespace volumed::apply_request_fuzz
