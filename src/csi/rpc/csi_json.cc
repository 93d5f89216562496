#include "csi/rpc/csi_json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::unique_ptr<Message> NewMessage(const Descriptor* of) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(of)->New());
}

bool IsJsonOf(const std::string& json, const Descriptor* of) {
  return google::protobuf::util::JsonStringToMessage(json, NewMessage(of).get()).ok();
}

// "volumeid" of "volume_id" and of "volumeId".
std::string Letters(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

// What is said of a field that the message does not have. Its own name is not: it may be anything.
std::string NoSuchField(const std::string& key, const Descriptor* of) {
  std::vector<std::string> names;
  for (int i = 0; i < of->field_count(); ++i) {
    if (Letters(of->field(i)->name()) == Letters(key)) {
      return "; did you mean the field " + of->field(i)->name() + "?";
    }
    names.push_back(of->field(i)->name());
  }
  if (names.empty()) return "; that has no fields";
  return "; it has a field that is none of these: " + Join(names, ", ");
}

// Protobuf's own reason quotes the text around the fault, which may be a secret.
std::string WhatIsWrong(const std::string& json, const Descriptor* of) {
  google::protobuf::Struct parsed;
  if (!google::protobuf::util::JsonStringToMessage(json, &parsed).ok()) {
    return "; it cannot be read as a JSON object at all";
  }
  const std::map<std::string, google::protobuf::Value> fields(parsed.fields().begin(),
                                                              parsed.fields().end());
  for (const auto& [key, value] : fields) {
    const FieldDescriptor* field = of->FindFieldByName(key);
    if (field == nullptr) field = of->FindFieldByCamelcaseName(key);
    if (field == nullptr) return NoSuchField(key, of);
    google::protobuf::Struct one;
    (*one.mutable_fields())[key] = value;
    std::string text;
    const bool is_text = google::protobuf::util::MessageToJsonString(one, &text).ok();
    if (is_text && !IsJsonOf(text, of)) {
      return "; what its field " + field->name() + " has is not of the right type";
    }
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<google::protobuf::Message>> CsiRequestFromJson(const CsiMethod& method,
                                                                      std::string_view json) {
  std::unique_ptr<google::protobuf::Message> request = NewMessage(method.request);
  if (json.empty()) return request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), request.get());
  if (status.ok()) return request;
  return Error::NotApplied(Code::kInvalidArgument,
                           "the request is no JSON of " + method.request->full_name() +
                               WhatIsWrong(std::string(json), method.request));
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

Result<std::string> CsiShownJsonOf(const google::protobuf::Message& answer,
                                   const CsiSecrets& secrets, const CsiStream* stream) {
  Result<std::string> json = CsiShownJsonOf(answer, secrets);
  if (!json.ok() || stream == nullptr) return json;
  return std::string("{\"cut\":") + (stream->is_cut ? "true" : "false") +
         ",\"messages\":" + std::to_string(stream->messages) + ",\"answer\":" + *json + "}";
}

CsiCallOptions WithStreamOf(const CsiMethod& method, CsiCallOptions options) {
  if (method.streaming && options.stream == nullptr) options.stream = std::make_shared<CsiStream>();
  return options;
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
  const CsiCallOptions with_stream = WithStreamOf(*method, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> answer,
                   channel.Perform(*request, with_stream));
  Result<std::string> shown =
      CsiShownJsonOf(*answer, CsiSecrets(*request, options.secrets), with_stream.stream.get());
  // The call itself has gone well.
  if (!shown.ok() && method->kind == CsiRpcKind::kMutating) return shown.error().AsMaybeApplied();
  return shown;
}

}  // namespace volumed
