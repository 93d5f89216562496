// The rules of requests, made from the proto: for each RPC a request that keeps them, and then each
// field that is missing, too large, or of a value that there is not.
#include "csidriver/csi_request_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "csi.pb.h"
#include "csi/rpc/csi_methods.h"

namespace volumed {
namespace {

using MessageDescriptor = google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::vector<const CsiMethod*> RpcsOfCsi() {
  std::vector<const CsiMethod*> rpcs;
  for (const CsiMethod& method : CsiMethods()) {
    if (method.service.starts_with("csi.v1.")) rpcs.push_back(&method);
  }
  return rpcs;
}

std::unique_ptr<Message> NewRequest(const CsiMethod& rpc) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(rpc.request)->New());
}

void FillMessage(Message& message);

// One element of a list, one entry of a map, or the value.
void FillField(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      many ? reflection.AddString(&message, &field, "text")
           : reflection.SetString(&message, &field, "text");
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return FillMessage(many ? *reflection.AddMessage(&message, &field)
                              : *reflection.MutableMessage(&message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      FAIL() << field.full_name() << ": a request of CSI has no field of this type";
  }
}

// Every field at all depths; of a oneof its last one.
void FillMessage(Message& message) {
  const MessageDescriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) FillField(message, *type.field(i));
}

std::unique_ptr<Message> FullRequest(const CsiMethod& rpc) {
  std::unique_ptr<Message> request = NewRequest(rpc);
  FillMessage(*request);
  return request;
}

// Calls `visit` for the message and each one in it, with its path.
void Walk(Message& message, const std::string& path,
          const std::function<void(Message&, const std::string& path)>& visit) {
  visit(message, path);
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const std::string below = (path.empty() ? "" : path + ".") + field->name();
    if (field->is_repeated()) {
      Walk(*reflection.MutableRepeatedMessage(&message, field, 0), below + "[0]", visit);
    } else {
      Walk(*reflection.MutableMessage(&message, field), below, visit);
    }
  }
}

// That the request is refused, and that the text has the words.
void ExpectRefused(const Message& request, const std::string& words, const std::string& what) {
  const Status checked = CheckCsiRequest(request);
  ASSERT_FALSE(checked.ok()) << what << " passed";
  EXPECT_EQ(checked.error().code(), Code::kInvalidArgument) << what;
  EXPECT_FALSE(checked.error().maybe_applied()) << what;
  EXPECT_NE(checked.error().message().find(words), std::string::npos)
      << what << ": " << checked.error().message();
}

// Makes one change at one place of a full request of each RPC, for all places: `change` is told a
// message and its number-th chance in it, and returns the words of the refusal; "" if there is none
// more in this message.
using Change = std::function<std::string(Message& message, const std::string& path, int number)>;

int ForEachPlace(const Change& change) {
  int places = 0;
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    std::vector<std::string> paths;
    Walk(*FullRequest(*rpc), "", [&](Message&, const std::string& path) { paths.push_back(path); });
    for (const std::string& path : paths) {
      for (int number = 0;; ++number) {
        const std::unique_ptr<Message> request = FullRequest(*rpc);
        std::string words;
        Walk(*request, "", [&](Message& message, const std::string& at) {
          if (at == path) words = change(message, at, number);
        });
        if (words.empty()) break;
        ++places;
        ExpectRefused(*request, words, rpc->name + " " + path + " " + std::to_string(number));
      }
    }
  }
  return places;
}

std::string Below(const std::string& path, const std::string& name) {
  return (path.empty() ? "" : path + ".") + name;
}

TEST(CsiRequestRulesTest, ARequestWithEveryFieldKeepsTheRules) {
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    const Status checked = CheckCsiRequest(*FullRequest(*rpc));
    EXPECT_TRUE(checked.ok()) << rpc->name << ": " << checked.error().message();
  }
}

TEST(CsiRequestRulesTest, EachRequiredFieldThatIsMissingIsNamed) {
  const int places = ForEachPlace([](Message& message, const std::string& path, int number) {
    const std::vector<std::string> required = RequiredCsiFields(*message.GetDescriptor());
    if (number >= static_cast<int>(required.size())) return std::string();
    const std::vector<std::string> names = Split(required[static_cast<size_t>(number)], '|');
    const MessageDescriptor& type = *message.GetDescriptor();
    for (const std::string& name : names) {
      if (const auto* oneof = type.FindOneofByName(name)) {
        message.GetReflection()->ClearOneof(&message, oneof);
      } else {
        message.GetReflection()->ClearField(&message, type.FindFieldByName(name));
      }
    }
    return Below(path, Join(names, " or ")) + " is required";
  });
  EXPECT_GT(places, 60);
}

// What the specification says REQUIRED of, read by hand; the table is held against it.
TEST(CsiRequestRulesTest, ARequestWithNothingIsRefusedUnlessItsRpcAsksForNothing) {
  const std::set<std::string> may_be_empty = {
      "GetPluginInfo",
      "GetPluginCapabilities",
      "Probe",
      "ListVolumes",
      "GetCapacity",
      "ControllerGetCapabilities",
      "ListSnapshots",
      "ControllerListVolumeHealth",
      "NodeGetCapabilities",
      "NodeGetInfo",
      "NodeGetStorageHealth",
      "GroupControllerGetCapabilities",
  };
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    EXPECT_EQ(CheckCsiRequest(*NewRequest(*rpc)).ok(), may_be_empty.contains(rpc->name))
        << rpc->name;
  }
}

TEST(CsiRequestRulesTest, TheTableNamesFieldsThatThereAre) {
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    Walk(*FullRequest(*rpc), "", [&](Message& message, const std::string&) {
      const MessageDescriptor& type = *message.GetDescriptor();
      for (const std::string& required : RequiredCsiFields(type)) {
        for (const std::string& name : Split(required, '|')) {
          EXPECT_TRUE(type.FindFieldByName(name) != nullptr ||
                      type.FindOneofByName(name) != nullptr)
              << type.full_name() << " has no " << name;
        }
      }
    });
  }
}

// The number-th field of the message that has texts; null if there are none more.
const FieldDescriptor* TextField(const Message& message, int number) {
  const MessageDescriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    if (number-- == 0) return type.field(i);
  }
  return nullptr;
}

void SetText(Message& message, const FieldDescriptor& field, const std::string& text) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) return reflection.SetRepeatedString(&message, &field, 0, text);
  reflection.SetString(&message, &field, text);
}

TEST(CsiRequestRulesTest, EachTextMayHaveItsSizeAndNotOneByteMore) {
  const int places = ForEachPlace([](Message& message, const std::string& path, int number) {
    const FieldDescriptor* const field = TextField(message, number);
    if (field == nullptr) return std::string();
    SetText(message, *field, std::string(MostCsiBytes(*field) + 1, 'a'));
    return Below(path, field->name()) + " has " + std::to_string(MostCsiBytes(*field) + 1);
  });
  EXPECT_GT(places, 60);
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    const std::unique_ptr<Message> request = FullRequest(*rpc);
    Walk(*request, "", [&](Message& message, const std::string&) {
      for (int number = 0; const FieldDescriptor* field = TextField(message, number); ++number) {
        SetText(message, *field, std::string(MostCsiBytes(*field), 'a'));
      }
    });
    const Status checked = CheckCsiRequest(*request);
    EXPECT_TRUE(checked.ok()) << rpc->name << ": " << checked.error().message();
  }
}

TEST(CsiRequestRulesTest, TheSizesAreTheSpecifications) {
  const auto most = [](const MessageDescriptor& message, const char* field) {
    return MostCsiBytes(*message.FindFieldByName(field));
  };
  const MessageDescriptor& publish = *::csi::v1::NodePublishVolumeRequest::descriptor();
  EXPECT_EQ(most(publish, "volume_id"), 128U);
  EXPECT_EQ(most(publish, "target_path"), 4095U);
  EXPECT_EQ(most(publish, "staging_target_path"), 4095U);
  EXPECT_EQ(most(*::csi::v1::NodeExpandVolumeRequest::descriptor(), "volume_path"), 4095U);
  EXPECT_EQ(most(*::csi::v1::NodeGetVolumeHealthRequest::descriptor(), "volume_publish_path"),
            4095U);
  EXPECT_EQ(most(*::csi::v1::ControllerPublishVolumeRequest::descriptor(), "node_id"), 256U);
  EXPECT_EQ(most(*::csi::v1::CreateVolumeRequest::descriptor(), "name"), 128U);
}

// The number-th map of the message; null if there are none more.
const FieldDescriptor* MapField(const Message& message, int number) {
  const MessageDescriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (!type.field(i)->is_map()) continue;
    if (number-- == 0) return type.field(i);
  }
  return nullptr;
}

void SetEntry(Message& message, const FieldDescriptor& field, const std::string& key,
              const std::string& value) {
  message.GetReflection()->ClearField(&message, &field);
  Message& entry = *message.GetReflection()->AddMessage(&message, &field);
  entry.GetReflection()->SetString(&entry, field.message_type()->map_key(), key);
  entry.GetReflection()->SetString(&entry, field.message_type()->map_value(), value);
}

TEST(CsiRequestRulesTest, EachMapMayHaveFourKibibytesAndNotOneByteMore) {
  const int places = ForEachPlace([](Message& message, const std::string& path, int number) {
    const FieldDescriptor* const field = MapField(message, number);
    if (field == nullptr) return std::string();
    SetEntry(message, *field, "key", std::string(4096 - 3 + 1, 'a'));
    return Below(path, field->name()) + " has 4097 bytes";
  });
  EXPECT_GT(places, 30);
  for (const CsiMethod* rpc : RpcsOfCsi()) {
    const std::unique_ptr<Message> request = FullRequest(*rpc);
    Walk(*request, "", [&](Message& message, const std::string&) {
      for (int number = 0; const FieldDescriptor* field = MapField(message, number); ++number) {
        SetEntry(message, *field, "key", std::string(4096 - 3, 'a'));
      }
    });
    const Status checked = CheckCsiRequest(*request);
    EXPECT_TRUE(checked.ok()) << rpc->name << ": " << checked.error().message();
  }
}

TEST(CsiRequestRulesTest, EachEnumHasAValueThatThereIs) {
  const int places = ForEachPlace([](Message& message, const std::string& path, int number) {
    const MessageDescriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM || number-- != 0) continue;
      message.GetReflection()->SetEnumValue(&message, &field, 77);
      return Below(path, field.name()) + " has the value 77";
    }
    return std::string();
  });
  EXPECT_GE(places, 7) << "each RPC with a capability has an access mode";
}

TEST(CsiRequestRulesTest, NoNumberIsNegative) {
  const int places = ForEachPlace([](Message& message, const std::string& path, int number) {
    const MessageDescriptor& type = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool is_wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
      if (!is_wide && field.cpp_type() != FieldDescriptor::CPPTYPE_INT32) continue;
      if (number-- != 0) continue;
      is_wide ? reflection.SetInt64(&message, &field, -1)
              : reflection.SetInt32(&message, &field, -1);
      return Below(path, field.name()) + " is negative";
    }
    return std::string();
  });
  EXPECT_GT(places, 8);
}

TEST(CsiRequestRulesTest, ANameHasNoControlCharacter) {
  ::csi::v1::CreateSnapshotRequest request;
  request.set_source_volume_id("v");
  for (const std::string& good :
       {std::string("pvc-1"), std::string("with\ttab\nand\rlines"), std::string("\u00e9\u4e2d"),
        std::string(128, 'n'), std::string("\u00a0")}) {
    request.set_name(good);
    EXPECT_TRUE(CheckCsiRequest(request).ok()) << good;
  }
  for (const std::string& bad :
       {std::string("a\0b", 3), std::string("\x01"), std::string("\x08"), std::string("\x0b"),
        std::string("\x0c"), std::string("\x0e"), std::string("\x1f"), std::string("a\x7f"),
        std::string("\xc2\x80"), std::string("a\xc2\x9f")}) {
    request.set_name(bad);
    ExpectRefused(request, "name has a control character", "a name");
  }
}

TEST(CsiRequestRulesTest, TheKeysOfSecretsAreWords) {
  ::csi::v1::DeleteVolumeRequest request;
  request.set_volume_id("v");
  (*request.mutable_secrets())["pass-word_1.x"] = "anything \x01 at all";
  // What a kubelet sends with serviceAccountTokenInSecrets was refused, and each publish failed.
  (*request.mutable_secrets())["csi.storage.k8s.io/serviceAccount.tokens"] = "{}";
  EXPECT_TRUE(CheckCsiRequest(request).ok());
  for (const char* key : {"", "a b", "a/b", "\u00e9"}) {
    request.clear_secrets();
    (*request.mutable_secrets())[key] = "CANARY";
    ExpectRefused(request, "secrets has a key", key);
    EXPECT_EQ(CheckCsiRequest(request).error().message().find("CANARY"), std::string::npos);
  }
}

TEST(CsiRequestRulesTest, MountFlagsAreBoundedTogether) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id("v");
  request.set_staging_target_path("/s");
  request.mutable_volume_capability()->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  auto& mount = *request.mutable_volume_capability()->mutable_mount();
  for (int i = 0; i < 8; ++i) mount.add_mount_flags(std::string(512, 'f'));
  EXPECT_TRUE(CheckCsiRequest(request).ok());
  mount.add_mount_flags("f");
  ExpectRefused(request, "volume_capability.mount.mount_flags has 4097 bytes", "flags");
}

TEST(CsiRequestRulesTest, ARangeHasAnEndThatIsNotBeforeItsBeginning) {
  ::csi::v1::ControllerExpandVolumeRequest request;
  request.set_volume_id("v");
  request.mutable_capacity_range();
  ExpectRefused(request, "capacity_range.required_bytes or limit_bytes is required", "no bound");
  request.mutable_capacity_range()->set_limit_bytes(5);
  EXPECT_TRUE(CheckCsiRequest(request).ok());
  request.mutable_capacity_range()->set_required_bytes(5);
  EXPECT_TRUE(CheckCsiRequest(request).ok());
  request.mutable_capacity_range()->set_required_bytes(6);
  ExpectRefused(request, "capacity_range.limit_bytes is less than required_bytes", "crossed");
}

}  // namespace
}  // namespace volumed
