// A StorageGuard on a fake kernel and records in memory, and what its tests say of volumes and
// disks.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "mounter/host_directory.h"
#include "operation/storage_steps.h"
#include "unit/operation/recording_parts.h"

namespace volumed {

inline PersistentVolume HostPathVolume(const std::string& name, const std::string& path) {
  PersistentVolume volume;
  volume.metadata.name = name;
  volume.spec.source = HostPathVolumeSource{path, HostPathType::kUnset};
  return volume;
}

class StorageGuardTest : public ::testing::Test {
 protected:
  StorageGuardTest() { Restart(); }
  void Restart(const std::string& boot = "boot-a") {
    guard_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, logger_, BootId(boot));
    guard_->AddOwnDirectory("the agent's root", "/var/lib/volumed");
  }
  static StorageHolder Pod(const std::string& name, bool persistent = false) {
    StorageHolder holder;
    holder.id = "pod/" + name;
    holder.volume = persistent ? name : holder.id;
    holder.use = StorageUse::kShared;
    holder.persistent = persistent;
    holder.text = "volume " + name;
    return holder;
  }
  static StorageHolder Device(const std::string& volume, StorageUse use) {
    return DeviceStorageHolder(UniqueVolumeName("p/" + volume), SpecName(volume), use);
  }
  // One storage that has a device at each of these paths.
  void AddDisk(const std::vector<std::string>& paths, const std::string& key) {
    FakeDevice disk;
    disk.storage_own = {key};
    for (const std::string& path : paths) kernel_.AddDevice(path, disk);
  }
  std::string Take(const StorageHolder& holder, const std::string& path) {
    return Text(guard_->Take(holder, {path}, {}));
  }
  // "" when nothing is in the way.
  std::string Reclaim(const PersistentVolume& volume, const std::string& claim,
                      const std::vector<PersistentVolume>& others = {}) {
    std::vector<std::shared_ptr<const PersistentVolume>> known;
    for (const PersistentVolume& other : others) {
      known.push_back(std::make_shared<const PersistentVolume>(other));
    }
    const auto taken = guard_->TakeForReclaim(ReclaimStorageHolder(volume), NameOf(volume), claim,
                                              StorageOf(known), {});
    return taken.ok() ? "" : taken.error().message();
  }
  static StorageName NameOf(const PersistentVolume& volume) {
    return *StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false));
  }
  void Use(const PersistentVolume& volume, const std::string& claim) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, FindUsers::kNo, {});
    ASSERT_TRUE(identity.ok());
    ASSERT_TRUE(guard_->RecordOwner({volume.metadata.name, name, claim, true}, *identity, {}).ok());
  }
  std::string OwnerOf(const std::string& path) {
    return guard_->Identify({path}, FindUsers::kNo, {}).value().owner;
  }
  template <typename T>
  static std::string Text(const Result<T>& result) {
    return result.ok() ? "" : result.error().message();
  }
  // What can be reclaimed is marked; what is retained has its record alone.
  std::string RecordOf(const PersistentVolume& volume, const std::string& claim,
                       bool retained = false) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, {}, {});
    if (!identity.ok()) return identity.error().message();
    const Status recorded =
        guard_->RecordOwner({volume.metadata.name, name, claim, !retained}, *identity, {});
    return recorded.ok() ? "" : recorded.error().message();
  }
  // A loop device on a blank file, /srv/pool/image.
  std::string AttachImage() {
    kernel_.AddDirectory("/srv/pool");
    const SafePath image{"/srv/pool", "image"};
    const auto file = kernel_.Call(
        SetFileSize{.path = image, .make = true, .bytes = int64_t{1} << 20, .mode = 0600}, {});
    EXPECT_TRUE(file.ok());
    const auto loop = kernel_.Call(AttachLoop{.path = image}, {});
    EXPECT_TRUE(loop.ok());
    return loop.ok() ? loop->device.path : "";
  }
  void MakeDisk(const std::string& node, const std::string& uuid, const std::string& mounted_at) {
    FakeDevice disk;
    disk.fs_type = "ext4";
    disk.usage = "filesystem";
    kernel_.AddDevice(node, disk);
    kernel_.ChangeDevice(node, [&](FakeDevice& device) { device.identity.uuid = uuid; });
    kernel_.AddDirectory(mounted_at);
    MountDisk(node, mounted_at);
  }
  void MountDisk(const std::string& node, const std::string& at) {
    ASSERT_TRUE(kernel_.Call(Mount{"ext4", node, {at, ""}, {}}, {}).ok());
  }
  // The agent before this one had it.
  void Expect(const StorageHolder& holder, const std::string& path) {
    guard_->Expect(BootId("boot-a"), {holder, {path}});
  }
  // As a pod with a local volume is set up: "" if it may have what is at the path.
  std::string SetUpLocal(const PersistentVolume& volume, const std::string& claim) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, {}, {});
    if (!identity.ok()) return identity.error().message();
    StorageOwner owner{volume.metadata.name, name, claim, false, true};
    const Status recorded = guard_->RecordOwner(owner, *identity, {});
    return recorded.ok() ? "" : recorded.error().message();
  }
  std::string Accept(const PersistentVolume& volume) {
    return Text(guard_->AcceptDirectory(volume.metadata.name, {}));
  }
  // A pod has had the device, and has left.
  std::string UseDevice(const std::string& volume, StorageUse use, const std::string& path) {
    const std::string refused = Take(Device(volume, use), path);
    if (!refused.empty()) return refused;
    EXPECT_TRUE(guard_->RecordDevice("device/p/" + volume, {path}, CallOptions{}).ok());
    EXPECT_TRUE(guard_->Release("device/p/" + volume).ok());
    return "";
  }
  std::string Format(const std::string& volume, const std::string& path) {
    const std::string refused = Take(Device(volume, StorageUse::kShared), path);
    if (!refused.empty()) return refused;
    const Status formats = guard_->Change("device/p/" + volume, StorageUse::kFormat);
    EXPECT_FALSE(!formats.ok() && guard_->Has("device/p/" + volume, StorageUse::kFormat));
    EXPECT_TRUE(guard_->Release("device/p/" + volume).ok());
    return formats.ok() ? "" : formats.error().message();
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  ManualClock clock_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  FakeKernel kernel_;
  MemoryRecordStore store_;
  std::unique_ptr<StorageGuard> guard_;
};

}  // namespace volumed
