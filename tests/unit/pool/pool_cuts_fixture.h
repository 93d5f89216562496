// A pool whose volumes are cut, for the tests of that: with a filesystem that shares blocks, or
// without, and with whoever keeps the cuts of clones.
#pragma once

#include <map>
#include <memory>
#include <optional>
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

}  // namespace volumed
