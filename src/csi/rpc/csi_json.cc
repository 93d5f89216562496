#include "csi/rpc/csi_json.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "base/printable_text.h"

namespace volumed {

Result<std::unique_ptr<google::protobuf::Message>> CsiRequestFromJson(const CsiMethod& method,
                                                                      std::string_view json) {
  std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.request)->New());
  if (json.empty()) return request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), request.get());
  if (status.ok()) return request;
  // Protobuf's own reason quotes the text around the fault.
  return Error::NotApplied(Code::kInvalidArgument,
                           "the request is no JSON of " + method.request->full_name());
}

Result<std::string> CsiJsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (status.ok()) return json;
  return Error::NotApplied(Code::kInternal,
                           message.GetDescriptor()->full_name() + " cannot be shown as JSON");
}

Result<std::string> CsiShownJsonOf(const google::protobuf::Message& answer,
                                   const CsiSecrets& secrets) {
  const std::unique_ptr<google::protobuf::Message> shown(answer.New());
  shown->CopyFrom(answer);
  secrets.RemoveFromTextsOf(*shown);
  return CsiJsonOf(*shown);
}

Result<std::string> CallCsiByName(CsiChannel& channel, std::string_view rpc, std::string_view json,
                                  const CsiCallOptions& options) {
  const CsiMethod* method = FindCsiMethod(rpc);
  if (method == nullptr) {
    constexpr size_t kShown = 64;
    return Error::NotApplied(Code::kNotFound, "CSI has no RPC " + Quoted(rpc, kShown));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> request,
                   CsiRequestFromJson(*method, json));
  ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> answer,
                   channel.Perform(*request, options));
  Result<std::string> shown = CsiShownJsonOf(*answer, CsiSecrets(*request, options.secrets));
  // The call itself has gone well.
  if (!shown.ok() && method->kind == CsiRpcKind::kMutating) return shown.error().AsMaybeApplied();
  return shown;
}

}  // namespace volumed
