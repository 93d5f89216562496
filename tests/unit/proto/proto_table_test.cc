// The wire formats that others decide are what their tables say, in every name, number and mark.
#include "proto_table.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "csi.pb.h"
#include "places.h"
#include "pluginregistration.pb.h"

namespace volumed {
namespace {

namespace pb = google::protobuf;
using testing::ElementsAre;
using testing::IsEmpty;

const pb::FileDescriptor& CsiFile() { return *csi::v1::VolumeCapability::descriptor()->file(); }

ProtoTable TableIn(const std::string& name) {
  std::ifstream file(SourcePath("tests/unit/proto/" + name));
  return ReadProtoTable(file);
}
ProtoTable CsiTable() { return TableIn("csi_fields.txt"); }

void ExpectAsInTable(const ProtoTable& table, const pb::FileDescriptor& file) {
  EXPECT_THAT(table.problems, IsEmpty());
  for (const std::string& difference : Differences(table.declarations, DeclarationsOf(file))) {
    ADD_FAILURE() << file.name() << ": " << difference;
  }
  EXPECT_EQ(file.syntax(), pb::FileDescriptor::SYNTAX_PROTO3);
}

TEST(ProtoTable, CsiIsAsItsTableSays) { ExpectAsInTable(CsiTable(), CsiFile()); }

TEST(ProtoTable, RegistrationIsAsItsTableSays) {
  ExpectAsInTable(TableIn("registration_fields.txt"),
                  *pluginregistration::PluginInfo::descriptor()->file());
}

// Each level by itself is whole.
TEST(ProtoTable, WhatBothLevelsHaveUsesNothingThatOneHasAlone) {
  const ProtoTable table = CsiTable();
  EXPECT_THAT(LevelProblems(table), IsEmpty());
  EXPECT_EQ(table.levels.at("message VolumeCondition"), "<=1.12");
  EXPECT_EQ(table.levels.at("Node.NodeGetVolumeHealth"), ">=1.13");
}

TEST(ProtoTable, AUseOfAnotherLevelIsFound) {
  ProtoTable table = CsiTable();
  table.levels.erase("NodeGetVolumeStatsResponse.volume_condition");
  table.levels.erase("message NodeGetVolumeHealthResponse");
  EXPECT_THAT(
      LevelProblems(table),
      ElementsAre(
          "NodeGetVolumeHealthResponse.volume_health: uses VolumeHealth, which is >=1.13",
          "NodeGetVolumeStatsResponse.volume_condition: uses VolumeCondition, which is <=1.12"));
}

TEST(ProtoTable, WhatCannotBeReadIsNamed) {
  std::istringstream in(
      "message A { a=1 s, a=2 s }  # a comment\n"
      "message B >=1.13 <=1.12 { b 1 s }\n"
      "record C {}\n"
      "message D { d=1 s\n"
      "message E {}");
  EXPECT_THAT(ReadProtoTable(in).problems,
              ElementsAre("A.a: is there twice", "message B: more than one level",
                          "message B: not NAME=...:  b 1 s ",
                          "record: none of message, enum, service, extend with a name",
                          "message  D : there is no { or no }"));
}

// csi.proto with one change.
class ChangedProto : public testing::Test {
 protected:
  using Change = std::function<void(pb::FileDescriptorProto&)>;

  std::vector<std::string> DifferencesAfter(const Change& change) {
    pb::DescriptorPool pool;
    for (const pb::FileDescriptor* file :
         {pb::FileOptions::descriptor()->file(), pb::Timestamp::descriptor()->file(),
          pb::BoolValue::descriptor()->file()}) {
      pb::FileDescriptorProto copy;
      file->CopyTo(&copy);
      pool.BuildFile(copy);
    }
    pb::FileDescriptorProto changed;
    CsiFile().CopyTo(&changed);
    change(changed);
    const pb::FileDescriptor* file = pool.BuildFile(changed);
    if (file == nullptr) return {"the changed proto is none"};
    return Differences(CsiTable().declarations, DeclarationsOf(*file));
  }

  static pb::DescriptorProto& Message(pb::FileDescriptorProto& file, const std::string& name) {
    for (pb::DescriptorProto& message : *file.mutable_message_type()) {
      if (message.name() == name) return message;
    }
    ADD_FAILURE() << "no message " << name;
    return *file.add_message_type();
  }
};

TEST_F(ChangedProto, IsTheSameWithoutAChange) {
  EXPECT_THAT(DifferencesAfter([](pb::FileDescriptorProto& /*file*/) {}), IsEmpty());
}

TEST_F(ChangedProto, ANumberIsNamed) {
  const auto change = [](pb::FileDescriptorProto& file) {
    Message(file, "NodeStageVolumeRequest").mutable_field(0)->set_number(9);
  };
  EXPECT_THAT(
      DifferencesAfter(change),
      ElementsAre("NodeStageVolumeRequest.volume_id: \"1 s\" in the table, \"9 s\" in the proto"));
}

TEST_F(ChangedProto, ATypeALabelAndAOneofAreNamed) {
  const auto change = [](pb::FileDescriptorProto& file) {
    Message(file, "CapacityRange")
        .mutable_field(0)
        ->set_type(pb::FieldDescriptorProto::TYPE_UINT64);
    Message(file, "VolumeContentSource").mutable_oneof_decl(0)->set_name("kind");
    Message(file, "VolumeGroupSnapshot")
        .mutable_field(1)
        ->set_label(pb::FieldDescriptorProto::LABEL_OPTIONAL);
  };
  EXPECT_THAT(
      DifferencesAfter(change),
      ElementsAre(
          "CapacityRange.required_bytes: \"1 i64\" in the table, \"1 uint64\" in the proto",
          "VolumeContentSource.snapshot: \"1 VolumeContentSource.SnapshotSource |type\" in the "
          "table, \"1 VolumeContentSource.SnapshotSource |kind\" in the proto",
          "VolumeContentSource.volume: \"2 VolumeContentSource.VolumeSource |type\" in the "
          "table, \"2 VolumeContentSource.VolumeSource |kind\" in the proto",
          "VolumeGroupSnapshot.snapshots: \"2 R Snapshot\" in the table, \"2 Snapshot\" in the "
          "proto"));
}

TEST_F(ChangedProto, AMarkIsNamed) {
  const auto change = [](pb::FileDescriptorProto& file) {
    Message(file, "NodeExpandVolumeRequest").mutable_field(5)->clear_options();
    Message(file, "VolumeCondition").mutable_options()->ClearExtension(csi::v1::alpha_message);
    Message(file, "DeleteVolumeRequest")
        .mutable_field(0)
        ->mutable_options()
        ->SetExtension(csi::v1::csi_secret, true);
  };
  EXPECT_THAT(
      DifferencesAfter(change),
      ElementsAre(
          "DeleteVolumeRequest.volume_id: \"1 s\" in the table, \"1 s *\" in the proto",
          "NodeExpandVolumeRequest.secrets: \"6 m * alpha\" in the table, \"6 m\" in the proto",
          "message VolumeCondition: \"alpha\" in the table, \"\" in the proto"));
}

TEST_F(ChangedProto, WhatIsMissingAndWhatIsMoreIsNamed) {
  const auto change = [](pb::FileDescriptorProto& file) {
    Message(file, "Snapshot").mutable_field()->RemoveLast();
    *Message(file, "ProbeRequest").add_field() = Message(file, "Volume").field(1);
    file.mutable_enum_type(0)->mutable_value(3)->set_name("LOSS");
    file.mutable_service(4)->mutable_method(0)->set_server_streaming(false);
  };
  EXPECT_THAT(
      DifferencesAfter(change),
      ElementsAre("Snapshot.accessible_topology: in the table alone, as \"7 R Topology alpha\"",
                  "SnapshotMetadata.GetMetadataAllocated: \"GetMetadataAllocatedRequest -> stream "
                  "GetMetadataAllocatedResponse\" in the table, \"GetMetadataAllocatedRequest -> "
                  "GetMetadataAllocatedResponse\" in the proto",
                  "VolumeHealthErrorType.DATA_LOSS: in the table alone, as \"3\"",
                  "ProbeRequest.volume_id: in the proto alone, as \"2 s\"",
                  "VolumeHealthErrorType.LOSS: in the proto alone, as \"3\""));
}

}  // namespace
}  // namespace volumed
