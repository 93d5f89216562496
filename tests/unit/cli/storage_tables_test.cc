#include "cli/storage_tables.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/object_tables.h"

namespace volumed {
namespace {

constexpr int64_t kMoment = 1'000'000'000'000;

v1::GetStorageResponse Volumes() {
  v1::GetStorageResponse storage;
  v1::PersistentVolume* bound = storage.add_persistent_volumes();
  bound->set_name("disk");
  bound->set_capacity("1Gi");
  bound->add_access_modes("ReadWriteMany");
  bound->add_access_modes("ReadWriteOnce");
  bound->set_reclaim_policy("Retain");
  bound->set_phase("Bound");
  bound->set_claim("default/data");
  bound->set_storage_class("fast");
  bound->set_volume_mode("Filesystem");
  bound->set_created_unix_ms(kMoment - 65'000);
  v1::PersistentVolume* going = storage.add_persistent_volumes();
  going->set_name("old");
  going->set_capacity("5Gi");
  going->add_access_modes("ReadWriteOncePod");
  going->set_reclaim_policy("Delete");
  going->set_phase("Failed");
  going->set_reason("no deleter");
  going->set_deleting(true);
  return storage;
}

v1::GetStorageResponse Claims() {
  v1::GetStorageResponse storage;
  v1::PersistentVolumeClaim* claim = storage.add_persistent_volume_claims();
  claim->set_namespace_("default");
  claim->set_name("data");
  claim->set_phase("Pending");
  claim->set_storage_class("fast");
  claim->set_volume_mode("Block");
  claim->set_reason("no volume fits");
  claim->set_owner("Pod/web");
  return storage;
}

std::string TableOf(const v1::GetStorageResponse& volumes, OutputFormat format) {
  std::ostringstream out;
  PrintPersistentVolumes(volumes, format, kMoment, out);
  return out.str();
}

std::string ClaimTable(OutputFormat format, bool all_namespaces) {
  std::ostringstream out;
  PrintClaims(Claims(), format, all_namespaces, kMoment, out);
  return out.str();
}

TEST(StorageTablesTest, VolumesHaveKubectlsColumns) {
  EXPECT_EQ(
      TableOf(Volumes(), OutputFormat::kTable),
      "NAME  CAPACITY  ACCESS MODES  RECLAIM POLICY  STATUS       CLAIM         STORAGECLASS  "
      "REASON      AGE\n"
      "disk  1Gi       RWO,RWX       Retain          Bound        default/data  fast          "
      "            1m5s\n"
      "old   5Gi       RWOP          Delete          Terminating                              "
      "no deleter  <unknown>\n");
  EXPECT_NE(TableOf(Volumes(), OutputFormat::kWide).find("1m5s       Filesystem\n"),
            std::string::npos)
      << TableOf(Volumes(), OutputFormat::kWide);
}

// Lines of 330 characters, which no terminal shows as a table.
TEST(StorageTablesTest, ALongReasonOfAVolumeIsCutButForTheWideTable) {
  v1::GetStorageResponse volumes = Volumes();
  const std::string reason =
      "deleted, by command or with its claim (reclaim policy Delete), and a.yaml still has it";
  volumes.mutable_persistent_volumes(1)->set_reason(reason);
  const std::string table = TableOf(volumes, OutputFormat::kTable);
  EXPECT_NE(table.find("  deleted, by command or with its claim (reclaim policy...  "),
            std::string::npos)
      << table;
  EXPECT_NE(TableOf(volumes, OutputFormat::kWide).find(reason), std::string::npos);
}

TEST(StorageTablesTest, WhatWasCutIsSaid) {
  v1::GetStorageResponse many = Volumes();
  many.set_not_shown(7);
  EXPECT_NE(TableOf(many, OutputFormat::kTable).find("and 7 more\n"), std::string::npos);
}

TEST(StorageTablesTest, ClaimsOfAllNamespacesNameThem) {
  EXPECT_EQ(ClaimTable(OutputFormat::kTable, false),
            "NAME  STATUS   VOLUME  CAPACITY  ACCESS MODES  STORAGECLASS  AGE\n"
            "data  Pending                                  fast          <unknown>\n");
  EXPECT_EQ(ClaimTable(OutputFormat::kTable, true).find("NAMESPACE  NAME  STATUS"), 0u);
  const std::string wide = ClaimTable(OutputFormat::kWide, false);
  EXPECT_NE(wide.find("VOLUMEMODE  OWNER    REASON\n"), std::string::npos) << wide;
  EXPECT_NE(wide.find("Block       Pod/web  no volume fits\n"), std::string::npos) << wide;
}

TEST(StorageTablesTest, TheDefaultClassIsMarked) {
  v1::GetStorageResponse storage;
  v1::StorageClass* one = storage.add_storage_classes();
  one->set_name("fast");
  one->set_provisioner("kubernetes.io/no-provisioner");
  one->set_reclaim_policy("Delete");
  one->set_volume_binding_mode("WaitForFirstConsumer");
  one->set_is_default(true);
  std::ostringstream out;
  PrintStorageClasses(storage, OutputFormat::kTable, kMoment, out);
  EXPECT_EQ(out.str(),
            "NAME            PROVISIONER                   RECLAIMPOLICY  VOLUMEBINDINGMODE     "
            "ALLOWVOLUMEEXPANSION  AGE\n"
            "fast (default)  kubernetes.io/no-provisioner  Delete         WaitForFirstConsumer  "
            "false                 <unknown>\n");
}

TEST(StorageTablesTest, ProgramsGetTheWholeMessage) {
  std::ostringstream json;
  PrintPersistentVolumes(Volumes(), OutputFormat::kJson, kMoment, json);
  EXPECT_NE(json.str().find("\"access_modes\": ["), std::string::npos) << json.str();
  EXPECT_NE(json.str().find("\"deleting\": true"), std::string::npos) << json.str();
  EXPECT_NE(ClaimTable(OutputFormat::kYaml, true).find("phase: Pending"), std::string::npos);
}

// `get` said Refused, and not what to do.
TEST(StorageTablesTest, ARefusedClaimTellsTheWayBackBelowTheTable) {
  v1::GetStorageResponse storage = Claims();
  storage.mutable_persistent_volume_claims(0)->set_phase("Refused");
  storage.mutable_persistent_volume_claims(0)->set_reason("deleted by command");
  std::ostringstream out;
  PrintClaims(storage, OutputFormat::kTable, false, kMoment, out);
  EXPECT_TRUE(out.str().ends_with("default/data: deleted by command\n")) << out.str();
}

// They were in no table.
TEST(StorageTablesTest, ARefusedClassAndARefusedConfigMapAreListedWithTheReasonBelow) {
  v1::GetStorageResponse classes;
  classes.add_storage_classes()->set_name("fast");
  classes.mutable_storage_classes(0)->set_phase("Refused");
  classes.mutable_storage_classes(0)->set_reason("deleted by command");
  std::ostringstream class_table;
  PrintStorageClasses(classes, OutputFormat::kTable, kMoment, class_table);
  EXPECT_NE(class_table.str().find("\nfast (Refused)  -"), std::string::npos) << class_table.str();
  EXPECT_TRUE(class_table.str().ends_with("\nfast: deleted by command\n")) << class_table.str();
  v1::ListObjectsResponse maps;
  v1::ListedObject* refused = maps.add_listed();
  refused->mutable_object()->set_namespace_("default");
  refused->mutable_object()->set_name("app");
  refused->set_phase("Refused");
  refused->set_reason("deleted by command");
  std::ostringstream out;
  PrintObjects(maps, kConfigMapNoun, OutputFormat::kTable, false, kMoment, out);
  EXPECT_EQ(out.str(),
            "NAME           DATA  AGE\n"
            "app (Refused)  -     <unknown>\n"
            "default/app: deleted by command\n");
}

TEST(StorageTablesTest, AKindsOwnColumnsStandBetweenNameAndAge) {
  v1::ListObjectsResponse attachments;
  for (const char* column : {"ATTACHER", "PV", "NODE", "ATTACHED"}) {
    attachments.add_columns(column);
  }
  v1::ListedObject* one = attachments.add_listed();
  one->mutable_object()->set_name("csi-1");
  one->set_source("manifests:/m");
  for (const char* cell : {"csi.example.org", "pv", "n1", "true"}) one->add_cells(cell);
  v1::ListedObject* refused = attachments.add_listed();
  refused->mutable_object()->set_name("csi-2");
  refused->set_phase("Refused");
  refused->set_reason("deleted by command");
  std::ostringstream out;
  PrintObjects(attachments, kVolumeAttachmentNoun, OutputFormat::kTable, true, kMoment, out);
  EXPECT_EQ(out.str(),
            "NAME             ATTACHER         PV  NODE  ATTACHED  AGE\n"
            "csi-1            csi.example.org  pv  n1    true      <unknown>\n"
            "csi-2 (Refused)  -                -   -     -         <unknown>\n"
            "csi-2: deleted by command\n");
  std::ostringstream wide;
  PrintObjects(attachments, kVolumeAttachmentNoun, OutputFormat::kWide, true, kMoment, wide);
  EXPECT_NE(wide.str().find("AGE        SOURCE\n"), std::string::npos) << wide.str();
  EXPECT_NE(wide.str().find("<unknown>  manifests:/m\n"), std::string::npos) << wide.str();
}

}  // namespace
}  // namespace volumed
