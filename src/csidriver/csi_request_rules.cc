#include "csidriver/csi_request_rules.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "csi.pb.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kOr = '|';

struct RequiredFields {
  std::string_view message;
  // With blanks between them. Each is a field, a oneof, or several fields of which one has to be
  // there: "requisite|preferred".
  std::string_view fields;
};

// What is in no row requires nothing. ControllerModifyVolume, and DeleteVolumeGroupSnapshot and its
// Get, require less here than the specification says: callers send an empty map or list there, and
// for this driver nothing depends on it.
constexpr std::array kRequired{
    RequiredFields{"CreateVolumeRequest", "name volume_capabilities"},
    RequiredFields{"DeleteVolumeRequest", "volume_id"},
    RequiredFields{"ControllerPublishVolumeRequest", "volume_id node_id volume_capability"},
    RequiredFields{"ControllerUnpublishVolumeRequest", "volume_id"},
    RequiredFields{"ValidateVolumeCapabilitiesRequest", "volume_id volume_capabilities"},
    RequiredFields{"ControllerGetVolumeRequest", "volume_id"},
    RequiredFields{"ControllerModifyVolumeRequest", "volume_id"},
    RequiredFields{"CreateSnapshotRequest", "source_volume_id name"},
    RequiredFields{"DeleteSnapshotRequest", "snapshot_id"},
    RequiredFields{"GetSnapshotRequest", "snapshot_id"},
    RequiredFields{"ControllerExpandVolumeRequest", "volume_id capacity_range"},
    RequiredFields{"ControllerGetVolumeHealthRequest", "volume_id"},
    RequiredFields{"NodeStageVolumeRequest", "volume_id staging_target_path volume_capability"},
    RequiredFields{"NodeUnstageVolumeRequest", "volume_id staging_target_path"},
    RequiredFields{"NodePublishVolumeRequest", "volume_id target_path volume_capability"},
    RequiredFields{"NodeUnpublishVolumeRequest", "volume_id target_path"},
    RequiredFields{"NodeGetVolumeStatsRequest", "volume_id volume_path"},
    RequiredFields{"NodeExpandVolumeRequest", "volume_id volume_path"},
    RequiredFields{"NodeGetVolumeHealthRequest", "volume_id"},
    RequiredFields{"CreateVolumeGroupSnapshotRequest", "name source_volume_ids"},
    RequiredFields{"DeleteVolumeGroupSnapshotRequest", "group_snapshot_id"},
    RequiredFields{"GetVolumeGroupSnapshotRequest", "group_snapshot_id"},
    RequiredFields{"GetMetadataAllocatedRequest", "snapshot_id"},
    RequiredFields{"GetMetadataDeltaRequest", "base_snapshot_id target_snapshot_id"},
    // What requests are made of.
    RequiredFields{"VolumeCapability", "access_type access_mode"},
    RequiredFields{"AccessMode", "mode"},
    RequiredFields{"CapacityRange", "required_bytes|limit_bytes"},
    RequiredFields{"VolumeContentSource", "type"},
    RequiredFields{"SnapshotSource", "snapshot_id"},
    RequiredFields{"VolumeSource", "volume_id"},
    RequiredFields{"TopologyRequirement", "requisite|preferred"},
};

struct FieldSize {
  std::string_view field;
  size_t most;
};
// Of fields with these names, wherever they are.
constexpr std::array kSizes{
    FieldSize{"staging_target_path", kMostCsiPath}, FieldSize{"target_path", kMostCsiPath},
    FieldSize{"volume_path", kMostCsiPath},         FieldSize{"volume_publish_path", kMostCsiPath},
    FieldSize{"node_id", kMostCsiNodeId},           FieldSize{"mount_flags", kMostCsiMap},
};

// The name that a caller chooses for what is to be made.
constexpr std::string_view kNameField = "name";
constexpr std::string_view kMountFlags = "mount_flags";

Error Breaks(const std::string& path, const std::string& how) {
  return Error::NotApplied(Code::kInvalidArgument, path + " " + how);
}

Error TooLarge(const std::string& path, size_t is, size_t most) {
  return Breaks(path, "has " + std::to_string(is) + " bytes; " + std::to_string(most) +
                          " are the most that the CSI specification allows");
}

// CSI has no such field in its requests; a test says so.
Error Unknown(const std::string& path) {
  return Breaks(path, "is of a type that this driver does not know");
}

std::string PathOf(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  // Of a plain field of proto3 that is whether it has another value than zero.
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

bool IsThere(const Message& message, const std::string& name) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  if (const auto* const oneof = type.FindOneofByName(name)) {
    return message.GetReflection()->HasOneof(message, oneof);
  }
  const FieldDescriptor* const field = type.FindFieldByName(name);
  return field != nullptr && IsSet(message, *field);
}

Status CheckRequired(const Message& message, const std::string& parent) {
  for (const std::string& required : RequiredCsiFields(*message.GetDescriptor())) {
    const std::vector<std::string> names = Split(required, kOr);
    const bool is_there = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return IsThere(message, name);
    });
    if (!is_there) return Breaks(PathOf(parent, Join(names, " or ")), "is required");
  }
  return OkStatus();
}

// All control characters but tab, newline and carriage return are refused, also those from U+007F
// to U+009F. Source: CSI spec v1.13.0, CreateVolumeRequest.name.
Status CheckName(const std::string& path, const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const bool is_low = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    // U+0080 to U+009F in UTF-8.
    const bool is_high = byte == 0xc2 && i + 1 < name.size() &&
                         static_cast<unsigned char>(name[i + 1]) >= 0x80 &&
                         static_cast<unsigned char>(name[i + 1]) <= 0x9f;
    if (is_low || byte == 0x7f || is_high) return Breaks(path, "has a control character");
  }
  return OkStatus();
}

// The letter of CSI does not allow it; a kubelet sends it for a CSIDriver with
// serviceAccountTokenInSecrets, and each publish would fail without it.
// Source: kubernetes pkg/volume/csi/csi_mounter.go@v1.36.
constexpr char kTokensKey[] = "csi.storage.k8s.io/serviceAccount.tokens";

bool IsSecretKey(const std::string& key) {
  if (key == kTokensKey) return true;
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

Status CheckText(const std::string& path, const FieldDescriptor& field, const std::string& text) {
  const size_t most = MostCsiBytes(field);
  if (text.size() > most) return TooLarge(path, text.size(), most);
  if (field.name() == kNameField) return CheckName(path, text);
  return OkStatus();
}

// A map of strings, as all are that CSI has.
Status CheckMap(const Message& message, const FieldDescriptor& field, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_secret = field.options().GetExtension(::csi::v1::csi_secret);
  size_t bytes = 0;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Reflection& of_entry = *entry.GetReflection();
    const std::string key = of_entry.GetString(entry, field.message_type()->map_key());
    bytes += key.size() + of_entry.GetString(entry, field.message_type()->map_value()).size();
    if (is_secret && !IsSecretKey(key)) {
      return Breaks(path, "has a key with other characters than letters, digits, '-', '_', '.'");
    }
  }
  return bytes > kMostCsiMap ? Status(TooLarge(path, bytes, kMostCsiMap)) : OkStatus();
}

Status CheckTexts(const Message& message, const FieldDescriptor& field, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) {
    return CheckText(path, field, reflection.GetString(message, &field));
  }
  size_t bytes = 0;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const std::string text = reflection.GetRepeatedString(message, &field, i);
    RETURN_IF_ERROR(CheckText(path, field, text));
    bytes += text.size();
  }
  if (field.name() == kMountFlags && bytes > kMostCsiMap) {
    return TooLarge(path, bytes, kMostCsiMap);
  }
  return OkStatus();
}

Status CheckNumber(const std::string& path, int64_t number) {
  return number < 0 ? Status(Breaks(path, "is negative")) : OkStatus();
}

Status CheckEnum(const Message& message, const FieldDescriptor& field, const std::string& path) {
  const int number = message.GetReflection()->GetEnumValue(message, &field);
  if (field.enum_type()->FindValueByNumber(number) != nullptr) return OkStatus();
  return Breaks(path,
                "has the value " + std::to_string(number) + ", which this driver does not know");
}

Status CheckMessage(const Message& message, const std::string& parent);

Status CheckMessages(const Message& message, const FieldDescriptor& field,
                     const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_map()) return CheckMap(message, field, path);
  if (!field.is_repeated()) return CheckMessage(reflection.GetMessage(message, &field), path);
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    RETURN_IF_ERROR(CheckMessage(reflection.GetRepeatedMessage(message, &field, i),
                                 path + "[" + std::to_string(i) + "]"));
  }
  return OkStatus();
}

Status CheckField(const Message& message, const FieldDescriptor& field, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_plain = field.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
                        field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
  if (field.is_repeated() && is_plain) return Unknown(path);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckTexts(message, field, path);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckMessages(message, field, path);
    case FieldDescriptor::CPPTYPE_ENUM:
      return CheckEnum(message, field, path);
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckNumber(path, reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckNumber(path, reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return OkStatus();
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      break;
  }
  return Unknown(path);
}

Status CheckRange(const Message& message, const std::string& parent) {
  if (message.GetDescriptor() != ::csi::v1::CapacityRange::descriptor()) return OkStatus();
  const auto& range = static_cast<const ::csi::v1::CapacityRange&>(message);
  if (range.limit_bytes() == 0 || range.limit_bytes() >= range.required_bytes()) return OkStatus();
  return Breaks(PathOf(parent, "limit_bytes"), "is less than required_bytes");
}

Status CheckMessage(const Message& message, const std::string& parent) {
  RETURN_IF_ERROR(CheckRequired(message, parent));
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    RETURN_IF_ERROR(CheckField(message, *field, PathOf(parent, field->name())));
  }
  return CheckRange(message, parent);
}

}  // namespace

std::vector<std::string> RequiredCsiFields(const google::protobuf::Descriptor& message) {
  for (const RequiredFields& row : kRequired) {
    if (row.message == message.name()) return Split(row.fields, ' ');
  }
  return {};
}

size_t MostCsiBytes(const FieldDescriptor& field) {
  for (const FieldSize& row : kSizes) {
    if (row.field == field.name()) return row.most;
  }
  return kMostCsiText;
}

Status CheckCsiRequest(const Message& request) { return CheckMessage(request, ""); }

}  // namespace volumed
