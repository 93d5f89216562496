#include "csi/rpc/csi_methods.h"

#include <array>

#include "base/printable_text.h"
#include "base/strings.h"
#include "csi.pb.h"
#include "pluginregistration.pb.h"

namespace volumed {
namespace {

// What changes nothing at the driver, however often it is called.
// Source: CSI spec v1.13.0, each RPC's section.
constexpr std::array kReadOnlyRpcs{
    "GetPluginInfo",
    "GetPluginCapabilities",
    "Probe",
    "ValidateVolumeCapabilities",
    "ListVolumes",
    "GetCapacity",
    "ControllerGetCapabilities",
    "ListSnapshots",
    "GetSnapshot",
    "ControllerGetVolume",
    "ControllerListVolumeHealth",
    "ControllerGetVolumeHealth",
    "GroupControllerGetCapabilities",
    "GetVolumeGroupSnapshot",
    "GetMetadataAllocated",
    "GetMetadataDelta",
    "NodeGetVolumeStats",
    "NodeGetCapabilities",
    "NodeGetInfo",
    "NodeGetVolumeHealth",
    "NodeGetStorageHealth",
    // Of the registration.
    "GetInfo",
};

// The first one that a request has is its key.
constexpr std::array kKeyFields{"volume_id", "snapshot_id", "group_snapshot_id", "name",
                                "target_snapshot_id"};

constexpr size_t kKeyBytes = 256;

std::string KeyFieldOf(const google::protobuf::Descriptor& request) {
  for (const char* name : kKeyFields) {
    const google::protobuf::FieldDescriptor* field = request.FindFieldByName(name);
    if (field != nullptr && field->type() == google::protobuf::FieldDescriptor::TYPE_STRING &&
        !field->is_repeated()) {
      return name;
    }
  }
  return "";
}

CsiMethod MethodFrom(const google::protobuf::MethodDescriptor& rpc) {
  CsiMethod method;
  method.service = rpc.service()->full_name();
  method.name = rpc.name();
  method.path = "/" + method.service + "/" + method.name;
  for (const char* name : kReadOnlyRpcs) {
    if (method.name == name) method.kind = CsiRpcKind::kReadOnly;
  }
  method.streaming = rpc.client_streaming() || rpc.server_streaming();
  method.key_field = KeyFieldOf(*rpc.input_type());
  method.request = rpc.input_type();
  method.response = rpc.output_type();
  return method;
}

std::vector<CsiMethod> AllMethods() {
  std::vector<CsiMethod> methods;
  for (const google::protobuf::FileDescriptor* file :
       {::csi::v1::ProbeRequest::descriptor()->file(),
        ::pluginregistration::InfoRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(MethodFrom(*file->service(s)->method(m)));
      }
    }
  }
  return methods;
}

}  // namespace

const std::vector<CsiMethod>& CsiMethods() {
  static const std::vector<CsiMethod> methods = AllMethods();
  return methods;
}

const CsiMethod* FindCsiMethod(std::string_view name) {
  const std::string_view wanted = StripPrefix(name, "/").value_or(name);
  for (const CsiMethod& method : CsiMethods()) {
    const std::string_view path = std::string_view(method.path).substr(1);
    const std::string_view short_path = path.substr(method.service.rfind('.') + 1);
    if (wanted == method.name || wanted == path || wanted == short_path) return &method;
  }
  return nullptr;
}

const CsiMethod* CsiMethodOf(const google::protobuf::Descriptor* request) {
  for (const CsiMethod& method : CsiMethods()) {
    if (method.request == request) return &method;
  }
  return nullptr;
}

std::string CsiKeyOf(const CsiMethod& method, const google::protobuf::Message& request) {
  if (method.key_field.empty()) return "";
  const google::protobuf::FieldDescriptor* field =
      request.GetDescriptor()->FindFieldByName(method.key_field);
  return CsiKeyText(request.GetReflection()->GetString(request, field));
}

std::string CsiKeyText(std::string_view value) {
  return std::string(BeginningOf(PrintableText(BeginningOf(value, kKeyBytes)), kKeyBytes));
}

}  // namespace volumed
