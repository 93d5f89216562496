// What plugins are told of an object of which nobody knows whether it is there: with the real
// plugins, from a source's list to the files of a volume. And what a host that attaches is told.
#include "agent/catalog_host_objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/node_attach_detach_host.h"
#include "fakes/fake_kernel.h"
#include "fakes/target_of.h"
#include "kube/about_object.h"
#include "plugins/in_tree_plugins.h"
#include "unit/kube/kube_testing.h"
#include "unit/plugins/plugin_world.h"
#include "volumehost/node_kubelet_host.h"

namespace volumed {
namespace {

const ObjectKey kSecretKey{ObjectKind::kSecret, "default", "login"};
const ObjectKey kConfigKey{ObjectKind::kConfigMap, "default", "settings"};

std::string SecretYaml() {
  return "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\n"
         "stringData: {user: root}\n";
}

class CatalogHostObjectsTest : public testing::Test {
 protected:
  CatalogHostObjectsTest()
      : world_(kernel_, "/r"), host_{world_.paths, kernel_,         world_.clock,
                                     objects_,     world_.tokens,   world_.events,
                                     world_.node,  world_.families, world_.irreversible} {
    kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
    catalog_.AddListener(
        [this](const std::vector<ObjectChange>& changes) { objects_.Follow(changes); });
    catalog_.ExpectSource("manifests");
    objects_.SetWaitsFor(catalog_.IncompleteSources());
    EXPECT_TRUE(mgr_.InitPlugins(MakeInTreePlugins(), host_).ok());
  }

  // A complete list of the source.
  void Deliver(std::vector<ObjectWithOrigin> objects, std::vector<UnknownObject> unknown = {}) {
    ObjectList list;
    list.source = "manifests";
    list.complete = true;
    list.objects = std::move(objects);
    list.unknown = std::move(unknown);
    catalog_.Update(std::move(list));
    objects_.SetWaitsFor(catalog_.IncompleteSources());
  }
  void DeliverBoth() {
    Deliver({FromFile("/m/login.yaml", SecretYaml()),
             FromFile("/m/settings.yaml", ConfigMapYaml("settings", "1"))});
  }
  void DeliverUnknown() {
    Deliver({}, {{kSecretKey, "/m/login.yaml", "cannot be decoded"},
                 {kConfigKey, "/m/settings.yaml", "cannot be decoded"}});
  }

  // Optional, so that a certain absence would be an empty volume.
  static std::vector<VolumeSource> OptionalSources() {
    SecretVolumeSource secret;
    secret.secret_name = "login";
    secret.optional = true;
    ConfigMapVolumeSource config;
    config.name = "settings";
    config.optional = true;
    ProjectedVolumeSource projected;
    SecretProjection secret_projection;
    secret_projection.name = "login";
    secret_projection.optional = true;
    ConfigMapProjection config_projection;
    config_projection.name = "settings";
    config_projection.optional = true;
    projected.sources = {secret_projection, config_projection};
    return {secret, config, projected};
  }
  std::unique_ptr<Mounter> NewMounter(const VolumeSource& source) {
    const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"v", source});
    VolumePlugin* plugin = mgr_.FindPluginBySpec(spec).value();
    return plugin->NewMounter(spec, TargetOf(world_.paths, *plugin, spec, MakePod())).value();
  }
  Status SetUp1(const VolumeSource& source, bool is_remount = false) {
    MounterArgs args;
    args.is_remount = is_remount;
    return NewMounter(source)->SetUp(args);
  }
  // The names in the volume.
  std::vector<std::string> Files(const VolumeSource& source) {
    const std::string path = NewMounter(source)->GetPath() + "/..data/";
    std::vector<std::string> names;
    for (const char* name : {"user", "k"}) {
      if (kernel_.Exists(path + name)) names.emplace_back(name);
    }
    return names;
  }

  FakeKernel kernel_;
  PluginWorld world_;
  ObjectCatalog catalog_{world_.clock};
  CatalogHostObjects objects_;
  VolumeHost host_;
  VolumePluginMgr mgr_;
};

TEST_F(CatalogHostObjectsTest, NotDeliveredYetNeverReadsAsNotFound) {
  for (const VolumeSource& source : OptionalSources()) {
    const Status status = SetUp1(source);
    ASSERT_FALSE(status.ok()) << "an empty volume was made of an object that may still come";
    EXPECT_EQ(status.error().code(), Code::kUnavailable);
    EXPECT_FALSE(status.error().maybe_applied());
    EXPECT_NE(status.error().message().find("no complete list yet from: manifests"),
              std::string::npos)
        << status.error().message();
  }
  EXPECT_EQ(kernel_.call_count(), 0U);
  Deliver({});
  for (const VolumeSource& source : OptionalSources()) {
    EXPECT_TRUE(SetUp1(source).ok()) << "it is certainly absent, and optional";
  }
}

// "not found", though its owner saw it in the file.
TEST_F(CatalogHostObjectsTest, WhatACommandDeletedAndItsFileStillHasIsNotFoundForThatReason) {
  DeliverBoth();
  catalog_.End(kConfigKey, "", 1);
  objects_.SetRefused(catalog_.Refused());
  const auto config = objects_.GetConfigMap("default", "settings");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code(), Code::kNotFound) << "optional ones are empty then";
  EXPECT_NE(config.error().message().find("deleted by command and /m/settings.yaml still has it"),
            std::string::npos)
      << config.error().message();
  EXPECT_EQ("ConfigMap default/settings not found: " + objects_.WhyNotFound(kConfigKey),
            config.error().message());
  EXPECT_TRUE(IsAboutObject(config.error(), kConfigKey)) << "its owner is named";
  EXPECT_TRUE(objects_.GetSecret("default", "login").ok());
  Deliver({FromFile("/m/login.yaml", SecretYaml())});
  objects_.SetRefused(catalog_.Refused());
  EXPECT_TRUE(IsAboutObject(objects_.GetConfigMap("default", "settings").error(), kConfigKey));
  EXPECT_EQ(objects_.GetConfigMap("default", "settings").error().message(),
            "ConfigMap default/settings not found");
  EXPECT_EQ(objects_.WhyNotFound(kConfigKey), "");
}

TEST_F(CatalogHostObjectsTest, ARememberedObjectNamesItsFileUntilItsSourceHasDelivered) {
  catalog_.Remember("manifests", {{kSecretKey, "", "/m/login.yaml", nullptr}});
  const auto secret = objects_.GetSecret("default", "login");
  ASSERT_FALSE(secret.ok());
  EXPECT_EQ(secret.error().code(), Code::kUnavailable);
  EXPECT_NE(secret.error().message().find("/m/login.yaml"), std::string::npos);
  Deliver({});
  EXPECT_EQ(objects_.GetSecret("default", "login").error().code(), Code::kNotFound);
}

TEST_F(CatalogHostObjectsTest, ANewVolumeOfAnUnknownObjectWaitsAndNamesTheFile) {
  DeliverUnknown();
  for (const VolumeSource& source : OptionalSources()) {
    const Status status = SetUp1(source);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kUnavailable);
    EXPECT_NE(status.error().message().find(".yaml: cannot be decoded"), std::string::npos)
        << status.error().message();
  }
  EXPECT_EQ(kernel_.call_count(), 0U);
}

TEST_F(CatalogHostObjectsTest, AMountedVolumeOfAnUnknownObjectStaysAsItIsAlsoIfItIsOptional) {
  DeliverBoth();
  for (const VolumeSource& source : OptionalSources()) {
    DeliverBoth();
    ASSERT_TRUE(SetUp1(source).ok());
    const std::vector<std::string> before = Files(source);
    ASSERT_FALSE(before.empty());
    DeliverUnknown();
    const Status status = SetUp1(source, true);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kUnavailable);
    EXPECT_EQ(Files(source), before);
    // Once the source is in order, an object that it lacks is absent.
    Deliver({});
    EXPECT_TRUE(SetUp1(source, true).ok());
    EXPECT_TRUE(Files(source).empty());
  }
}

// ---- NodeAttachDetachHost -----------------------------------------------------------------------

const ObjectKey kAttachmentKey{ObjectKind::kVolumeAttachment, "", "va"};

std::string AttachmentOf(const std::string& status) {
  return "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\nspec: "
         "{attacher: d, nodeName: n1, source: {persistentVolumeName: pv}}\nstatus: {" +
         status + "}\n";
}

class NodeAttachDetachHostTest : public CatalogHostObjectsTest {
 protected:
  NodeAttachDetachHostTest() {
    catalog_.AddListener(
        [this](const std::vector<ObjectChange>& changes) { kubelet_.Follow(changes); });
  }
  NodeKubeletHost kubelet_{world_.clock};
  const NodeAttachDetachHost attach_detach_{objects_, kubelet_};
};

TEST_F(NodeAttachDetachHostTest, ListsWhatTheSourcesHave) {
  Deliver({FromFile("/m/va.yaml", AttachmentOf("attached: true, attachmentMetadata: {lun: \"7\"}")),
           FromFile("/m/n1.yaml",
                    "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: "
                    "n1}\nspec: {drivers: [{name: d, nodeID: a}]}\n"),
           FromFile("/m/d.yaml",
                    "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: "
                    "d}\nspec: {}\n")});
  const auto attachment = attach_detach_.GetVolumeAttachment("va");
  ASSERT_TRUE(attachment.ok());
  EXPECT_TRUE((*attachment)->attached);
  EXPECT_EQ((*attachment)->attachment_metadata.at("lun"), "7");
  EXPECT_EQ(attach_detach_.ListVolumeAttachments().size(), 1U);
  EXPECT_EQ((*attach_detach_.GetCsiNode(NodeName("n1")))->drivers.at(0).node_id, "a");
  EXPECT_EQ(attach_detach_.ListCsiNodes().size(), 1U);
  EXPECT_TRUE((*attach_detach_.GetCsiDriver("d"))->attach_required);
  EXPECT_EQ(attach_detach_.ListCsiDrivers().size(), 1U);
  EXPECT_EQ(attach_detach_.GetVolumeAttachment("other").error().code(), Code::kNotFound);
  EXPECT_EQ(attach_detach_.GetCsiNode(NodeName("n2")).error().code(), Code::kNotFound);
}

TEST_F(NodeAttachDetachHostTest, AnAttachmentOfWhichNobodyKnowsIsNeitherThereNorAbsent) {
  EXPECT_EQ(attach_detach_.GetVolumeAttachment("va").error().code(), Code::kUnavailable)
      << "it may still come";
  Deliver({FromFile("/m/va.yaml", AttachmentOf("attached: true"))});
  Deliver({}, {{kAttachmentKey, "/m/va.yaml", "cannot be decoded"}});
  const auto unknown = attach_detach_.GetVolumeAttachment("va");
  EXPECT_EQ(unknown.error().code(), Code::kUnavailable);
  EXPECT_NE(unknown.error().message().find("/m/va.yaml: cannot be decoded"), std::string::npos)
      << unknown.error().message();
  EXPECT_TRUE(IsAboutObject(unknown.error(), kAttachmentKey)) << "its owner is named";
  Deliver({});
  EXPECT_EQ(attach_detach_.GetVolumeAttachment("va").error().code(), Code::kNotFound);
}

// The value lives as long as somebody reads it.
TEST_F(NodeAttachDetachHostTest, AnAttachmentThatIsReadOutlivesItsSource) {
  Deliver({FromFile("/m/va.yaml", AttachmentOf("attached: true"))});
  const AttachDetachHost::VolumeAttachmentPtr read = *attach_detach_.GetVolumeAttachment("va");
  Deliver({});
  EXPECT_TRUE(read->attached);
  EXPECT_TRUE(attach_detach_.ListVolumeAttachments().empty());
}

}  // namespace
}  // namespace volumed
