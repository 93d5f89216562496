#include "kube/decode.h"
#include "kube/field_writer.h"
#include "kube/object_fields.h"
#include "kube/snapshot_fields.h"
#include "kube/storage_fields.h"

namespace volumed {

std::string EncodeObjectJson(const Object& object, SecretEncoding secrets) {
  // A copy, because the declarations of the fields name places that a reader writes to.
  Object copy = object;
  nlohmann::json document = std::visit(
      [secrets](auto& typed) {
        FieldWriter writer(secrets);
        Fields(writer, typed);
        return writer.Take();
      },
      copy);
  document["apiVersion"] = std::string(ApiVersionOf(KindOf(object)));
  document["kind"] = std::string(ObjectKindName(KindOf(object)));
  // Bytes of a config map that are not UTF-8 cannot stand in JSON; the decoder lets none in.
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace volumed
