// hostPath volumes that are made, recycled and deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/target_of.h"
#include "mounter/host_directory.h"
#include "pluginmgr/wrapper_volumes.h"
#include "plugins/host_path.h"
#include "recycler/recycler_pod_template.h"
#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

// Keeps the pod that it is given, and lets it succeed.
class OnePod final : public RecyclerPodRunner {
 public:
  Result<std::unique_ptr<RecyclerPodWatch>> WatchPod(const std::string&,
                                                     const std::string&) override {
    return std::unique_ptr<RecyclerPodWatch>(std::make_unique<Watch>());
  }
  Status CreatePod(const Pod& created, const CallOptions&) override {
    pod = created;
    return OkStatus();
  }
  Status DeletePod(const std::string&, const std::string&, const CallOptions&) override {
    return OkStatus();
  }
  std::optional<Pod> pod;

 private:
  class Watch final : public RecyclerPodWatch {
   public:
    Result<std::optional<RecyclerPodChange>> Next(const CallOptions&) override {
      RecyclerPodChange change;
      change.phase = PodPhase::kSucceeded;
      return std::optional(change);
    }
  };
};

// Passes every call on, and keeps the domains of the calls.
class DomainWatcher final : public Kernel {
 public:
  explicit DomainWatcher(Kernel& kernel) : kernel_(kernel) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    domains_.insert(options.domain);
    return kernel_.Do(request, options);
  }
  // Those since it was asked last.
  std::set<std::string> Take() { return std::exchange(domains_, {}); }

 private:
  Kernel& kernel_;
  std::set<std::string> domains_;
};

class HostPathStorageTest : public ::testing::Test {
 protected:
  HostPathPlugin& Plugin(HostPathSettings settings) {
    plugin_ = std::make_unique<HostPathPlugin>(std::move(settings));
    EXPECT_TRUE(plugin_->Init(PluginContext{world_.host, wrappers_}).ok());
    return *plugin_;
  }
  static HostPathSettings WithRoots() {
    HostPathSettings settings;
    settings.roots = {"/srv/volumes", "/tmp/hostpath_pv"};
    settings.config.provisioning_enabled = true;
    return settings;
  }
  static VolumeSpec Spec(const std::string& path, const char* capacity = "5Gi") {
    PersistentVolume volume;
    volume.metadata.name = "pv-1";
    volume.spec.capacity = Quantity::Parse(capacity).value();
    volume.spec.source = HostPathVolumeSource{path, HostPathType::kUnset};
    return VolumeSpec::FromPersistentVolume(volume, true);
  }
  Status Delete(HostPathSettings settings, const std::string& path) {
    const auto deleter = Plugin(std::move(settings)).NewDeleter(Spec(path));
    return deleter.ok() ? (*deleter)->Delete({}) : Status(deleter.error());
  }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/var/lib/volumed"};
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  std::unique_ptr<HostPathPlugin> plugin_;
  OnePod pods_;
};

TEST_F(HostPathStorageTest, APersistentVolumeIsMountedLikeAnInlineOne) {
  HostPathPlugin& plugin = Plugin({});
  ASSERT_TRUE(plugin.CanSupport(Spec("/h//x/")));
  EXPECT_EQ(plugin.GetAccessModes(), std::vector<AccessMode>{AccessMode::kReadWriteOnce});
  const VolumeSpec spec = Spec("/h//x/");
  const auto mounter =
      plugin.NewMounter(spec, TargetOf(world_.paths, plugin, spec, MakePod())).value();
  EXPECT_EQ(mounter->GetPath(), "/h/x");
  EXPECT_TRUE(mounter->GetAttributes().read_only) << "as the claim says";
}

TEST_F(HostPathStorageTest, ProvisionsADirectoryBelowTheFirstRoot) {
  VolumeOptions options;
  options.pv_name = "pv-new";
  options.reclaim_policy = ReclaimPolicy::kDelete;
  options.claim.spec.storage.request = Quantity::Parse("1Gi").value();
  auto made = Plugin(WithRoots()).NewProvisioner(options).value()->Provision(nullptr, {}, {});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  const std::string path = std::get<HostPathVolumeSource>(made->spec.source).path;
  EXPECT_EQ(path, "/srv/volumes/pv-new");
  EXPECT_EQ(kernel_.Find(path).type, FileType::kDirectory);
  EXPECT_EQ(kernel_.Find(path).mode, 0750u);
  EXPECT_EQ(made->metadata.name, "pv-new");
  EXPECT_EQ(made->metadata.annotations.at("kubernetes.io/createdby"),
            "hostpath-dynamic-provisioner");
  EXPECT_EQ(made->spec.capacity, Quantity::Parse("1Gi").value());
  EXPECT_EQ(made->spec.access_modes, std::vector<AccessMode>{AccessMode::kReadWriteOnce});
  EXPECT_EQ(made->spec.reclaim_policy, ReclaimPolicy::kDelete);
  // What was provisioned can be deleted.
  kernel_.AddFile(path + "/data", "x");
  EXPECT_TRUE(Delete(WithRoots(), path).ok());
  EXPECT_FALSE(kernel_.Exists(path));
  EXPECT_TRUE(kernel_.Exists("/srv/volumes"));
}

TEST_F(HostPathStorageTest, WhatIsPlannedIsMadeAndMadeAgainTheSame) {
  VolumeOptions options;
  options.pv_name = "pvc-1";
  const auto provisioner = Plugin(WithRoots()).NewProvisioner(options).value();
  const auto planned = provisioner->Plan();
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
  EXPECT_EQ(*provisioner->Provision(nullptr, {}, {}), *planned);
  EXPECT_EQ(*provisioner->Provision(nullptr, {}, {}), *planned) << "it may have been cut off";
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/pvc-1"));
  ASSERT_TRUE(provisioner->Undo(*planned, {}).ok());
  EXPECT_FALSE(kernel_.Exists("/srv/volumes/pvc-1"));
  EXPECT_TRUE(provisioner->Undo(*planned, {}).ok()) << "gone is undone";
}

TEST_F(HostPathStorageTest, ADirectoryThatHoldsSomethingIsNeitherTakenNorTakenAway) {
  kernel_.AddFile("/srv/volumes/pvc-1/precious", "x");
  VolumeOptions options;
  options.pv_name = "pvc-1";
  const auto provisioner = Plugin(WithRoots()).NewProvisioner(options).value();
  const auto made = provisioner->Provision(nullptr, {}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Code::kAlreadyExists);
  EXPECT_FALSE(made.error().maybe_applied());
  EXPECT_TRUE(provisioner->Undo(provisioner->Plan().value(), {}).ok());
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/pvc-1/precious"));
  PersistentVolume elsewhere = provisioner->Plan().value();
  elsewhere.spec.source = HostPathVolumeSource{"/etc/pvc-1", HostPathType::kUnset};
  EXPECT_EQ(provisioner->Undo(elsewhere, {}).error().code(), Code::kPermissionDenied);
}

TEST_F(HostPathStorageTest, ARootThatHangsHoldsUpOnlyWhatIsDoneBelowIt) {
  DomainWatcher watcher(kernel_);
  PluginWorld world(watcher, "/var/lib/volumed");
  HostPathPlugin plugin(WithRoots());
  ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
  VolumeOptions options;
  options.pv_name = "pvc-1";
  const auto provisioner = plugin.NewProvisioner(options).value();
  const std::set<std::string> of_root = {"/srv/volumes"};
  ASSERT_TRUE(provisioner->Provision(nullptr, {}, {}).ok());
  EXPECT_EQ(watcher.Take(), of_root);
  ASSERT_TRUE(provisioner->Undo(provisioner->Plan().value(), {}).ok());
  EXPECT_EQ(watcher.Take(), of_root);
  ASSERT_TRUE(plugin.NewDeleter(Spec("/srv/volumes/pvc-1")).value()->Delete({}).ok());
  EXPECT_EQ(watcher.Take(), of_root);
}

// Only the try told, so that a volume waited for ever for what cannot be.
TEST_F(HostPathStorageTest, WhatIsNeverDeletedOrEmptiedIsToldBeforehand) {
  HostPathPlugin& plugin = Plugin(WithRoots());
  EXPECT_TRUE(plugin.NewDeleter(Spec("/srv/volumes/v")).ok());
  EXPECT_FALSE(plugin.NewDeleter(Spec("/srv/elsewhere")).ok());
  EXPECT_FALSE(plugin.NewDeleter(Spec("/srv/volumes/../x")).ok());
  EXPECT_FALSE(plugin.NewDeleter(Spec("/srv/volumes")).ok()) << "the root itself";
  EXPECT_TRUE(plugin.CanRecycle(Spec("/srv/elsewhere")).ok());
  EXPECT_FALSE(plugin.CanRecycle(Spec("/")).ok());
  EXPECT_FALSE(plugin.CanRecycle(Spec("/var/lib/volumed/x")).ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(HostPathStorageTest, WhatTheProvisionerCannotGiveIsRefusedInWords) {
  VolumeOptions options;
  options.pv_name = "pvc-1";
  options.parameters["speed"] = "fast";
  EXPECT_EQ(Plugin(WithRoots()).NewProvisioner(options).error().message(),
            "invalid option \"speed\" for volume plugin kubernetes.io/host-path");
  options.parameters.clear();
  const auto refusal = [&](const VolumeOptions& of) {
    return plugin_->NewProvisioner(of).value()->Plan().error().message();
  };
  VolumeOptions selecting = options;
  selecting.claim.spec.selector.emplace();
  EXPECT_NE(refusal(selecting).find("Selector is not supported"), std::string::npos);
  VolumeOptions filled = options;
  filled.claim.spec.data_source_json = "{}";
  EXPECT_NE(refusal(filled).find("Only CSI plugin can provision"), std::string::npos);
  for (const char* name : {"", "..", "a/b"}) {
    options.pv_name = name;
    EXPECT_NE(refusal(options).find("is no name of a volume"), std::string::npos) << name;
  }
}

TEST_F(HostPathStorageTest, ProvisioningIsOffUnlessConfigured) {
  const std::string disabled =
      "provisioning in volume plugin \"kubernetes.io/host-path\" is disabled";
  EXPECT_EQ(Plugin({}).NewProvisioner({}).error().message(), disabled);
  HostPathSettings no_roots;
  no_roots.config.provisioning_enabled = true;
  EXPECT_EQ(Plugin(no_roots).NewProvisioner({}).error().message(),
            disabled + ": no directory is configured for its volumes");
}

TEST_F(HostPathStorageTest, BlockVolumesAreNotProvisioned) {
  VolumeOptions options;
  options.claim.spec.volume_mode = VolumeMode::kBlock;
  const auto made = Plugin(WithRoots()).NewProvisioner(options).value()->Provision(nullptr, {}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(),
            "kubernetes.io/host-path does not support block volume provisioning");
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(HostPathStorageTest, DeletesBelowTheRootsOnly) {
  kernel_.AddFile("/tmp/hostpath_pv/a/x", "x");
  kernel_.AddFile("/etc/tmp/precious", "x");
  kernel_.AddFile("/srv/volumes2/precious", "x");
  EXPECT_TRUE(Delete(WithRoots(), "/tmp/hostpath_pv/a").ok());
  EXPECT_FALSE(kernel_.Exists("/tmp/hostpath_pv/a"));
  EXPECT_TRUE(Delete(WithRoots(), "/tmp/hostpath_pv/a").ok()) << "gone is deleted";
  for (const char* path : {"/etc/tmp", "/srv/volumes", "/srv/volumes/", "/srv/volumes2", "/srv",
                           "/tmp/hostpath_pv", "/"}) {
    const Status status = Delete(WithRoots(), path);
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_EQ(status.error().code(), Code::kPermissionDenied) << path;
    EXPECT_EQ(status.error().message(),
              "host_path deleter only supports paths below: /srv/volumes, /tmp/hostpath_pv; but "
              "received provided " +
                  std::string(path));
  }
  EXPECT_EQ(Delete(WithRoots(), "/srv/volumes/../../etc/tmp").error().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(kernel_.Exists("/etc/tmp/precious"));
  EXPECT_TRUE(kernel_.Exists("/srv/volumes2/precious"));
}

TEST_F(HostPathStorageTest, WithoutRootsNothingIsDeleted) {
  kernel_.AddFile("/tmp/x/precious", "x");
  EXPECT_EQ(Delete({}, "/tmp/x").error().message(),
            "host_path deleter only supports paths below: none, as no directory is configured; "
            "but received provided /tmp/x");
  EXPECT_TRUE(kernel_.Exists("/tmp/x/precious"));
}

TEST_F(HostPathStorageTest, DeletingFollowsNoLinkAndCrossesNoMount) {
  kernel_.AddFile("/precious/x", "x");
  kernel_.AddDirectory("/srv/volumes");
  kernel_.AddSymlink("/srv/volumes/link", "/precious");
  EXPECT_FALSE(Delete(WithRoots(), "/srv/volumes/link/x").ok());
  kernel_.AddMount("ext4", "/dev/sdb", "/srv/volumes/v/mnt");
  kernel_.AddFile("/srv/volumes/v/mnt/precious", "x");
  EXPECT_EQ(Delete(WithRoots(), "/srv/volumes/v").error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(kernel_.Exists("/precious/x"));
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/v/mnt/precious"));
}

TEST_F(HostPathStorageTest, TheAgentsOwnRootIsNeverEmptied) {
  HostPathSettings settings;
  settings.roots = {"/var"};
  settings.recycler_pods = &pods_;
  for (const char* path : {"/var/lib/volumed", "/var/lib", "/var/lib/volumed/pods"}) {
    EXPECT_EQ(Delete(settings, path).error().code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(plugin_->Recycle("pv-1", Spec(path), {}, {}).error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(plugin_->Recycle("pv-1", Spec("/"), {}, {}).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(pods_.pod.has_value());
}

TEST_F(HostPathStorageTest, TheDeleterKnowsItsPathAndHasNoMetrics) {
  const auto deleter = Plugin(WithRoots()).NewDeleter(Spec("/tmp/hostpath_pv/x")).value();
  EXPECT_EQ(deleter->GetPath(), "/tmp/hostpath_pv/x");
  EXPECT_TRUE(IsNotSupported(deleter->GetMetrics({}).error()));
  const VolumeSpec inline_spec =
      VolumeSpec::FromVolume({"v", HostPathVolumeSource{"/tmp/x", HostPathType::kUnset}});
  EXPECT_EQ(plugin_->NewDeleter(inline_spec).error().message(),
            "spec.PersistentVolumeSource.HostPath is nil");
}

TEST_F(HostPathStorageTest, RecyclesWithACopyOfTheTemplate) {
  HostPathSettings settings;
  settings.recycler_pods = &pods_;
  settings.config.recycler_pod_template = NewPersistentVolumeRecyclerPodTemplate();
  settings.config.recycler_pod_template->metadata.name_space = "storage";
  settings.config.recycler_minimum_timeout_seconds = 60;
  settings.config.recycler_timeout_increment_seconds = 30;
  HostPathPlugin& plugin = Plugin(settings);
  ASSERT_TRUE(plugin.Recycle("pv-1", Spec("/h//one/"), {}, {}).ok());
  EXPECT_EQ(pods_.pod->metadata.name, "recycler-for-pv-1");
  EXPECT_EQ(pods_.pod->metadata.name_space, "storage");
  EXPECT_EQ(pods_.pod->spec.active_deadline_seconds, 150);
  EXPECT_EQ(std::get<HostPathVolumeSource>(pods_.pod->spec.volumes[0].source).path, "/h/one");
  ASSERT_TRUE(plugin.Recycle("pv-2", Spec("/h/two", "1Gi"), {}, {}).ok());
  EXPECT_EQ(pods_.pod->spec.active_deadline_seconds, 60);
  EXPECT_EQ(std::get<HostPathVolumeSource>(pods_.pod->spec.volumes[0].source).path, "/h/two");
}

TEST_F(HostPathStorageTest, RecyclingNeedsAVolumeARunnerAndAGoodTemplate) {
  HostPathPlugin& plugin = Plugin({});
  EXPECT_EQ(plugin.Recycle("pv-1", Spec("/h"), {}, {}).error().message(),
            "this node runs no recycler pods");
  const VolumeSpec inline_spec =
      VolumeSpec::FromVolume({"v", HostPathVolumeSource{"/tmp/x", HostPathType::kUnset}});
  EXPECT_EQ(plugin.Recycle("pv-1", inline_spec, {}, {}).error().message(),
            "spec.PersistentVolume.Spec.HostPath is nil");
  HostPathSettings settings;
  settings.recycler_pods = &pods_;
  settings.config.recycler_pod_template = Pod();
  EXPECT_EQ(Plugin(settings).Recycle("pv-1", Spec("/h"), {}, {}).error().message(),
            "recycler pod template: does not contain any volume(s)");
}

TEST_F(HostPathStorageTest, TheTemplateIsReadFromTheFileThatTheAttributeNames) {
  HostPathSettings settings;
  settings.recycler_pods = &pods_;
  settings.config.other_attributes[kRecyclerTemplateAttribute] = "/no/such/template.yaml";
  const Status status = Plugin(settings).Recycle("pv-1", Spec("/h"), {}, {});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), ::testing::HasSubstr("/no/such/template.yaml"));
}

// Its disk is mounted and unmounted while volumes are deleted.
TEST_F(HostPathStorageTest, WhatTookThePlaceOfTheApprovedDirectoryIsNotDeleted) {
  HostPathPlugin& plugin = Plugin(WithRoots());
  const auto remove_what_was_approved = [&] {
    CallOptions call;
    call.approved = std::make_shared<const StorageIdentity>(
        kernel_.Call(IdentifyStorage{HostPath("/srv/volumes/v")}, {}).value());
    const Status deleted = plugin.NewDeleter(Spec("/srv/volumes/v")).value()->Delete(call);
    kernel_.SetCallHook(nullptr);
    return deleted;
  };
  kernel_.AddFile("/srv/volumes/v/data", "x");
  kernel_.AddFile("/srv/volumes/other/precious", "x");
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (!std::holds_alternative<RemoveTree>(request)) return;
    kernel_.Rename("/srv/volumes/v", "away");
    kernel_.Rename("/srv/volumes/other", "v");
  });
  Status deleted = remove_what_was_approved();
  EXPECT_EQ(deleted.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(deleted.error().maybe_applied());
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/v/precious"));
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/away/data"));
  // One that is not there any more was not deleted.
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (std::holds_alternative<RemoveTree>(request)) kernel_.Rename("/srv/volumes/v", "gone");
  });
  deleted = remove_what_was_approved();
  EXPECT_EQ(deleted.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/gone/precious"));
  // Nor is one deleted that was not there.
  EXPECT_TRUE(remove_what_was_approved().ok());
  CallOptions missing;
  missing.approved = std::make_shared<const StorageIdentity>(
      kernel_.Call(IdentifyStorage{HostPath("/srv/volumes/v")}, {}).value());
  kernel_.AddFile("/srv/volumes/v/new", "x");
  EXPECT_TRUE(plugin.NewDeleter(Spec("/srv/volumes/v")).value()->Delete(missing).ok());
  EXPECT_TRUE(kernel_.Exists("/srv/volumes/v/new"));
  EXPECT_TRUE(remove_what_was_approved().ok());
  EXPECT_FALSE(kernel_.Exists("/srv/volumes/v"));
}

}  // namespace
}  // namespace volumed
