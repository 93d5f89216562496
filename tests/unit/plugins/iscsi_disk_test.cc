// iscsi: portals, places, links, iscsi.json, and what iscsiadm and records say.
#include "plugins/iscsi_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "kube/about_object.h"
#include "plugins/iscsi_admin.h"
#include "plugins/iscsi_records.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

IscsiVolumeSource Source() {
  IscsiVolumeSource source;
  source.target_portal = "10.0.0.1";
  source.iqn = "iqn.2026-01.lab:t";
  source.lun = 1;
  return source;
}

Result<IscsiVolume> Of(IscsiVolumeSource source) {
  return IscsiVolumeOf(VolumeSpec::FromVolume(PodVolume{"data", std::move(source)}));
}

TEST(IscsiDiskTest, APortalGetsItsPort) {
  EXPECT_EQ(PortalWithPort("10.0.0.1"), "10.0.0.1:3260");
  EXPECT_EQ(PortalWithPort("10.0.0.1:860"), "10.0.0.1:860");
  EXPECT_EQ(PortalWithPort("array.example"), "array.example:3260");
  EXPECT_EQ(PortalWithPort("[fd00::1]"), "[fd00::1]:3260");
  EXPECT_EQ(PortalWithPort("[fd00::1]:860"), "[fd00::1]:860");
  EXPECT_EQ(PortalWithPort("fd00::1"), "[fd00::1]:3260");
  EXPECT_TRUE(IsSamePortal("[fd00::1]:3260", "[fd00:0:0::1]:3260"));
  EXPECT_FALSE(IsSamePortal("10.0.0.1:3260", "10.0.0.1:860"));
}

TEST(IscsiDiskTest, TheNameIsAsWrittenAndThePlaceHasThePort) {
  IscsiVolumeSource source = Source();
  source.portals = {"10.0.0.2", "10.0.0.1:3260"};
  const IscsiVolume volume = Of(source).value();
  EXPECT_EQ(GetIscsiVolumeName(volume), "10.0.0.1:3260:iqn.2026-01.lab:t:1");
  EXPECT_THAT(volume.disk.portals, ElementsAre("10.0.0.1:3260", "10.0.0.2:3260"));
  const KubeletPaths paths("/r");
  EXPECT_EQ(IscsiMountPlace(paths, volume.disk).Display(),
            "/r/plugins/kubernetes.io/iscsi/iface-default/"
            "10.0.0.1:3260-iqn.2026-01.lab:t-lun-1");
  EXPECT_EQ(IscsiMapPlace(paths, volume.disk).Display(),
            "/r/plugins/kubernetes.io/iscsi/volumeDevices/iface-default/"
            "10.0.0.1:3260-iqn.2026-01.lab:t-lun-1");
}

TEST(IscsiDiskTest, AnInitiatorNameMeansAnInterfaceOfItsOwn) {
  IscsiVolumeSource source = Source();
  source.initiator_name = "iqn.2026-01.lab:me";
  const IscsiDisk disk = Of(source).value().disk;
  EXPECT_EQ(disk.iface, "10.0.0.1:3260:data");
  EXPECT_EQ(disk.init_iface, "default");
  EXPECT_TRUE(disk.has_own_iface());
  source.target_portal = std::string(60, 'a');
  EXPECT_THAT(Of(source).error().message(), HasSubstr("is longer than the 64 characters"));
}

TEST(IscsiDiskTest, NamesThatCouldBePathsOrOptionsAreRefused) {
  const auto refused = [](auto change) {
    IscsiVolumeSource source = Source();
    change(source);
    const auto volume = Of(source);
    return !volume.ok() && volume.error().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& source) { source.iqn = "iqn.a/../../x"; }));
  EXPECT_TRUE(refused([](auto& source) { source.iqn = "--logout"; }));
  EXPECT_TRUE(refused([](auto& source) { source.target_portal = "-o"; }));
  EXPECT_TRUE(refused([](auto& source) { source.target_portal = ""; }));
  EXPECT_TRUE(refused([](auto& source) { source.target_portal = "[fd00:3260"; }));
  EXPECT_TRUE(refused([](auto& source) { source.iscsi_interface = "../x"; }));
  EXPECT_TRUE(refused([](auto& source) { source.initiator_name = "a b"; }));
  EXPECT_TRUE(refused([](auto& source) { source.lun = -1; }));
}

TEST(IscsiDiskTest, AFileWhoseInterfaceIsAPathWasTaken) {
  const auto with_interface = [](const std::string& iface) {
    return DecodeIscsiDisk(
        R"({"VolName":"pv1","Portals":["10.0.0.1:3260"],"Iqn":"iqn.2003-01.a:b",)"
        R"("Lun":"3","InitIface":"default","Iface":")" +
        iface + "\"}");
  };
  EXPECT_TRUE(with_interface("10.0.0.1:3260:pv1").ok());
  EXPECT_TRUE(with_interface("[fd00::1]:3260:pv1").ok());
  for (const char* const bad : {"../../etc/x", "10.0.0/1:pv1", "-I", ""}) {
    const auto disk = with_interface(bad);
    ASSERT_FALSE(disk.ok()) << bad;
    EXPECT_EQ(disk.error().code(), Code::kDataLoss);
  }
}

TEST(IscsiDiskTest, LinksAreThoseOfUdev) {
  IscsiDisk disk = Of(Source()).value().disk;
  EXPECT_EQ(ByPathLink(disk, "10.0.0.1:3260", ""),
            "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2026-01.lab:t-lun-1");
  disk.lun = 256;
  EXPECT_EQ(ByPathLink(disk, "[fd00::1]:3260", "0000:00:05.0"),
            "/dev/disk/by-path/pci-0000:00:05.0-ip-fd00::1:3260-iscsi-iqn.2026-01.lab:t-"
            "lun-0x0100000000000000");
}

TEST(IscsiDiskTest, APlaceSaysWhatWasThere) {
  for (const char* portal : {"10.0.0.1:3260", "[fd00::1]:860", "array.example:3260"}) {
    IscsiVolumeSource source = Source();
    source.target_portal = portal;
    source.lun = 12;
    const IscsiDisk disk = Of(source).value().disk;
    const auto parsed = ParseIscsiPlace(IscsiMountPlace(KubeletPaths("/r"), disk).Display());
    ASSERT_TRUE(parsed) << portal;
    EXPECT_THAT(parsed->portals, ElementsAre(portal));
    EXPECT_EQ(parsed->iqn, disk.iqn);
    EXPECT_EQ(parsed->lun, 12);
    EXPECT_EQ(parsed->iface, "default");
  }
  EXPECT_FALSE(ParseIscsiPlace("/r/plugins/kubernetes.io/local-volume/mounts/pv"));
  EXPECT_FALSE(ParseIscsiPlace("/r/plugins/kubernetes.io/iscsi/iface-default/x-lun-1"));
}

TEST(IscsiDiskTest, TheFileIsKubelets) {
  IscsiVolumeSource source = Source();
  source.portals = {"10.0.0.2"};
  source.initiator_name = "iqn.2026-01.lab:me";
  const IscsiDisk disk = Of(source).value().disk;
  const std::string json = EncodeIscsiDisk(disk);
  EXPECT_EQ(json, R"({"VolName":"data","Portals":["10.0.0.1:3260","10.0.0.2:3260"],)"
                  R"("Iqn":"iqn.2026-01.lab:t","Lun":"1","InitIface":"default",)"
                  R"("Iface":"10.0.0.1:3260:data","InitiatorName":"iqn.2026-01.lab:me",)"
                  R"("MetricsProvider":null})"
                  "\n");
  EXPECT_EQ(DecodeIscsiDisk(json).value(), disk);
  for (const char* bad : {"", "[]", "{", R"({"Lun":"x"})", R"({"Lun":"1","Portals":[]})",
                          R"({"Lun":"1","Portals":["p"],"Iqn":"iqn.a/b","Iface":"default"})"}) {
    EXPECT_EQ(DecodeIscsiDisk(bad).error().code(), Code::kDataLoss) << bad;
  }
}

TEST(IscsiAdminTest, WhatItShowsIsRead) {
  const IscsiIface iface = ParseIfaceShow(
      "# BEGIN RECORD 2.1.8\niface.iscsi_ifacename = bnx2i.x\niface.transport_name = bnx2i\n"
      "iface.ipaddress = <empty>\niface.port = 0\n# END RECORD\n");
  EXPECT_EQ(iface.transport, "bnx2i");
  EXPECT_EQ(iface.settings.count("iface.ipaddress"), 0U);
  EXPECT_EQ(iface.settings.at("iface.port"), "0");
  EXPECT_THAT(ParseDiscovery("iscsiadm: a warning\n10.0.0.1:3260,1 iqn.a:b\n"
                             "[fd00::1]:3260,2 iqn.a:b\nnot,this one at all\n"),
              ElementsAre(DiscoveredPortal{"10.0.0.1:3260", "1", "iqn.a:b"},
                          DiscoveredPortal{"[fd00::1]:3260", "2", "iqn.a:b"}));
}

SecretObject ChapSecret(const std::string& password) {
  SecretObject secret;
  secret.metadata.name = "chap";
  secret.metadata.name_space = "shop";
  secret.data.emplace("node.session.auth.username", Secret<std::string>("user"));
  secret.data.emplace("node.session.auth.password", Secret<std::string>(password));
  secret.data.emplace("discovery.sendtargets.auth.username", Secret<std::string>("user"));
  return secret;
}

TEST(IscsiRecordsTest, SettingsTakeThePlaceOfThoseThatAreThere) {
  const ChapSettings settings = ChapSettingsOf(ChapSecret("pw = x"), ChapUse::kSession).value();
  const std::string record = WithSettings(
                                 "# BEGIN RECORD 2.1.8\nnode.name = n\n"
                                 "node.session.auth.authmethod = None\n"
                                 "node.session.auth.password = old\n"
                                 "node.session.auth.chap_algs = MD5\n# END RECORD\n",
                                 settings)
                                 .Reveal();
  EXPECT_EQ(record,
            "# BEGIN RECORD 2.1.8\nnode.name = n\nnode.session.auth.chap_algs = MD5\n"
            "node.session.auth.authmethod = CHAP\nnode.session.auth.username = user\n"
            "node.session.auth.password = pw = x\n# END RECORD\n");
}

TEST(IscsiRecordsTest, AValueThatCannotStandInARecordIsRefusedByItsKey) {
  for (const std::string bad : {"geheim\n", " geheim", "", "<empty>", "a\nnode.name = x"}) {
    const auto settings = ChapSettingsOf(ChapSecret(bad), ChapUse::kSession);
    ASSERT_FALSE(settings.ok()) << bad;
    EXPECT_THAT(settings.error().message(), HasSubstr("node.session.auth.password"));
    EXPECT_THAT(settings.error().message(), Not(HasSubstr("geheim")));
  }
  EXPECT_THAT(ChapSettingsOf(ChapSecret("x"), ChapUse::kDiscovery).error().message(),
              HasSubstr("has no key discovery.sendtargets.auth.password"));
}

// An administrator was to act, who may not even read the secret.
TEST(IscsiRecordsTest, AChapSecretThatIsNotRightWasNotItsOwnersToMend) {
  for (const ChapUse use : {ChapUse::kDiscovery, ChapUse::kSession}) {
    const auto settings = ChapSettingsOf(ChapSecret(" x"), use);
    ASSERT_FALSE(settings.ok());
    EXPECT_TRUE(IsAboutObject(settings.error(), {ObjectKind::kSecret, "shop", "chap"}));
  }
}

}  // namespace
}  // namespace volumed
