// A pool whose volumes are cut, for the tests of that: with a filesystem that shares blocks, or
// without, and with whoever keeps the cuts of clones.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pluginmgr/volume_content.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {

inline constexpr char kPoolDisk[] = "/dev/pool";

// What outlives the agents, with the cut that each clone is made of.
struct PoolCutsWorld : PoolWorld {
  explicit PoolCutsWorld(bool shares_blocks = true) : shares(shares_blocks) {
    if (!shares) return;
    FakeDevice disk;
    disk.fs_type = "xfs";
    disk.identity.uuid = "of-the-pool";
    disk.identity.size_bytes = int64_t{1} << 40;
    kernel.AddDevice(kPoolDisk, disk);
    MountPool();
  }
  void MountPool() {
    if (shares) Aside(Mount{"xfs", kPoolDisk, {kPoolPath, ""}, {}});
  }
  void Reboot() {
    kernel.Reboot();
    store.PowerLoss();
    MountPool();
  }
  static std::string ImageOfCut(const std::string& id) {
    return kPoolPath + "/cuts/" + id + "/image";
  }
  std::vector<std::string> CutDirectories() {
    std::vector<std::string> names;
    if (!kernel.Exists(kPoolPath + "/cuts")) return names;
    for (const DirectoryEntry& entry : Aside(ListDirectory{{kPoolPath, "cuts"}}).entries) {
      names.push_back(entry.name);
    }
    return names;
  }
  std::vector<PoolCutRecord> CutRows() const {
    std::vector<PoolCutRecord> rows;
    for (const Record& row : store.All()) {
      if (row.kind == kPoolCutRecordKind) rows.push_back(Must(DecodePoolCutRecord(row)));
    }
    return rows;
  }

  const bool shares;
  std::map<std::string, std::string> clones;  // id of the new volume -> id of its cut
};

class HeldTestCut final : public HeldContent {
 public:
  explicit HeldTestCut(std::string id) : id_(std::move(id)) {}
  const std::string& cut_id() const override { return id_; }

 private:
  const std::string id_;
};

// It cuts what is to be cloned, and copies what has to be copied, at once.
class TestContents final : public ContentHolder {
 public:
  TestContents(PoolCutsWorld& world, PoolVolumes& volumes) : world_(world), volumes_(volumes) {}

  Result<std::unique_ptr<HeldContent>> Hold(const VolumeContent& content,
                                            const std::string& for_volume,
                                            const CallOptions& call) override {
    if (not_ready) return Error::NotApplied(Code::kUnavailable, "it is not ready yet");
    std::string id = content.handle;
    if (!content.is_snapshot) {
      ASSIGN_OR_RETURN(id, CutOf(content.handle, for_volume, call));
    }
    RETURN_IF_ERROR(volumes_.CopyCut(id, 0, call));
    held_for.push_back(for_volume);
    return std::unique_ptr<HeldContent>(std::make_unique<HeldTestCut>(id));
  }

  bool not_ready = false;
  std::vector<std::string> held_for;

 private:
  Result<std::string> CutOf(const std::string& volume, const std::string& for_volume,
                            const CallOptions& call) {
    const Result<PoolCutRecord> before = volumes_.FindCut(world_.clones[for_volume]);
    if (before.ok() && before->state == PoolCutState::kCut) return before->id;
    const std::string id = volumes_.NewCutId(volume);
    world_.clones[for_volume] = id;
    RETURN_IF_ERROR(volumes_.Cut({{volume, id, std::nullopt}}, {}, call));
    return id;
  }

  PoolCutsWorld& world_;
  PoolVolumes& volumes_;
};

inline VolumeContent SnapshotContent(const std::string& id) {
  VolumeContent content;
  content.is_snapshot = true;
  content.handle = id;
  return content;
}

inline VolumeContent CloneContent(const std::string& id) {
  VolumeContent content;
  content.handle = id;
  return content;
}

inline PoolVolumeWish WishOf(const std::string& name, const VolumeContent& content,
                             int64_t bytes = 16 * kMiB) {
  PoolVolumeWish wish = Wish(name, bytes);
  wish.content = content;
  return wish;
}

inline const std::string kCutOfAnotherPool = "s-00000000-0123456789abcdef01234567";

template <typename T>
Error FailureOfCut(const Result<T>& result) {
  return result.ok() ? Error::NotApplied(Code::kUnknown, "it has not failed") : result.error();
}
template <typename T>
Code CodeOfCut(const Result<T>& result) {
  return FailureOfCut(result).code();
}

class PoolCutsTest : public ::testing::Test {
 protected:
  explicit PoolCutsTest(bool shares = true) : world_(shares) { StartAgent(); }
  void StartAgent(std::vector<PoolSettings> settings = {TestPool()}) {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_, std::move(settings));
    contents_ = std::make_unique<TestContents>(world_, volumes());
    volumes().SetContentHolder(contents_.get());
    const Status recovered = agent_->Recover(used_);
    EXPECT_TRUE(recovered.ok()) << (recovered.ok() ? "" : recovered.error().ToString());
  }
  PoolVolumes& volumes() { return *agent_->volumes; }

  PoolVolumeRecord Make(const std::string& name, bool is_block = false) {
    PoolVolumeWish wish = Wish(name);
    wish.is_block = is_block;
    return Must(volumes().Create(wish, {}));
  }
  PoolVolumeRecord MakeThick() {
    PoolVolumeWish wish = Wish("pvc-1");
    wish.parameters = {{"allocation", "thick"}};
    return Must(volumes().Create(wish, {}));
  }
  // As the plugin does it, with a filesystem of this UUID.
  CutWish::Mounted MountAt(const std::string& place, const std::string& id,
                           const std::string& fs_type = "ext4") {
    used_.insert(id);
    const OpenedVolume opened = Must(volumes().Open(id, false, {}));
    const std::string uuid = "uuid-of-" + id;
    if (world_.kernel.Device(opened.device).fs_type.empty()) {
      world_.Aside(FormatDevice{opened.device, opened.identity, fs_type, uuid, {}});
    }
    world_.kernel.AddDirectory(place);
    world_.Aside(Mount{fs_type, opened.device, {place, ""}, {}});
    EXPECT_TRUE(volumes().NoteFilesystem(id, {fs_type, uuid}).ok());
    for (const MountEntry& mount : world_.kernel.Mounts()) {
      if (mount.mount_point != place) continue;
      return {{place, ""}, mount.device_major, mount.device_minor};
    }
    ADD_FAILURE() << "nothing is mounted at " << place;
    return {};
  }
  void UnmountAt(const std::string& place, const std::string& id) {
    world_.Aside(Unmount{{place, ""}});
    EXPECT_TRUE(volumes().Close(id, {}).ok());
    used_.erase(id);
  }
  // A volume that had a filesystem, and is nowhere now.
  PoolVolumeRecord MakeUsed(const std::string& name) {
    const std::string id = Make(name).id;
    MountAt("/mnt", id);
    UnmountAt("/mnt", id);
    return Must(volumes().Find(id));
  }
  Result<std::vector<PoolCutRecord>> Cut(
      const std::string& id, const std::optional<CutWish::Mounted>& mounted = std::nullopt) {
    return volumes().Cut({{id, volumes().NewCutId(id), mounted}}, {}, {});
  }
  PoolCutRecord CutOf(const std::string& id) { return Must(Cut(id)).at(0); }
  int CallsOf(const std::string& request) const {
    const std::vector<std::string> log = world_.kernel.call_log();
    return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
      return (line + " ").find(" " + request + " ") != std::string::npos;
    }));
  }
  void ExpectNoCutIsLeft() {
    EXPECT_THAT(world_.CutRows(), ::testing::IsEmpty());
    EXPECT_THAT(world_.CutDirectories(), ::testing::IsEmpty());
    EXPECT_THAT(volumes().Cuts(), ::testing::IsEmpty());
  }

  PoolCutsWorld world_;
  std::set<std::string> used_;
  std::unique_ptr<PoolAgent> agent_;
  std::unique_ptr<TestContents> contents_;
};

// A pool on a filesystem that shares no blocks.
class PoolCopiesTest : public PoolCutsTest {
 protected:
  PoolCopiesTest() : PoolCutsTest(false) {}
};

}  // namespace volumed
