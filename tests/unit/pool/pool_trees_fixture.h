// What the tests of volumes that are directories and subvolumes have in common: a pool on a disk of
// the fake, and an agent that has it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/must.h"
#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {

inline constexpr int64_t kTreeBytes = 2 * kMiB;

// The cut is always there.
class TreeContents final : public ContentHolder {
 public:
  class Held final : public HeldContent {
   public:
    explicit Held(std::string id) : id_(std::move(id)) {}
    const std::string& cut_id() const override { return id_; }

   private:
    const std::string id_;
  };
  Result<std::unique_ptr<HeldContent>> Hold(const VolumeContent& content, const std::string&,
                                            const CallOptions&) override {
    return std::unique_ptr<HeldContent>(std::make_unique<Held>(content.handle));
  }
};

class TreePoolTest : public ::testing::Test {
 protected:
  // A pool on a disk with this filesystem, and an agent that has it.
  void Start(const std::string& fs_type, bool counts_projects = true) {
    MountDisk(fs_type, counts_projects);
    StartAgent();
  }
  void MountDisk(const std::string& fs_type, bool counts_projects = true) {
    FakeDevice disk;
    disk.fs_type = fs_type;
    disk.usage = "filesystem";
    disk.identity.uuid = "uuid-of-pool";
    node_.kernel.AddDevice("/dev/pool", disk);
    node_.Aside(Mount{fs_type, "/dev/pool", {kPoolPath, ""}, {}});
    if (fs_type != "btrfs") node_.kernel.CountProjects(kPoolPath, counts_projects);
  }
  void StartAgent() {
    agent_ = std::make_unique<PoolPluginAgent>(node_);
    agent_->volumes->SetContentHolder(&contents_);
    const Status recovered = agent_->Recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().ToString();
  }
  PoolVolumes& volumes() { return *agent_->volumes; }
  static PoolVolumeWish TreeWish(const std::string& backend, const std::string& name = "v") {
    PoolVolumeWish wish = Wish(name, kTreeBytes);
    wish.parameters["backend"] = backend;
    return wish;
  }
  static std::string DataOf(const std::string& id) {
    return kPoolPath + (id.starts_with("s-") ? "/cuts/" : "/volumes/") + id + "/data";
  }
  TreeQuota QuotaOf(const std::string& id) { return node_.Aside(ReadTreeQuota{{DataOf(id), ""}}); }
  // The errno of giving a file so many bytes, with its blocks; 0: it has them.
  int Write(const std::string& path, int64_t bytes) {
    SetFileSize set{{path, ""}, !node_.kernel.Exists(path)};
    set.bytes = bytes;
    set.allocate = true;
    const auto written = node_.kernel.DoAside(set);
    return written.ok() ? 0 : written.error().sys_errno();
  }
  template <typename T>
  static void ExpectRefused(const Result<T>& result, Code code, const std::string& why) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), code) << result.error().ToString();
    EXPECT_FALSE(result.error().maybe_applied()) << result.error().ToString();
    EXPECT_THAT(result.error().message(), ::testing::HasSubstr(why));
  }
  ClaimedVolume Claim(const std::string& backend, const StringMap& more = {}) {
    VolumeOptions options = ClaimOptions();
    options.parameters = more;
    options.parameters["backend"] = backend;
    options.claim.spec.storage.request = Quantity::FromBytes(kTreeBytes);
    ClaimedVolume claimed = Must(agent_->Plan(options));
    claimed.volume.spec = Must(agent_->Make(claimed)).spec;
    return claimed;
  }
  std::string Cut(const std::string& volume) {
    const std::string id = volumes().NewCutId(volume);
    Must(volumes().Cut({{.volume = volume, .cut = id, .mounted = std::nullopt}}, {}, {}));
    return id;
  }
  Result<PoolVolumeRecord> MakeOf(const std::string& cut, PoolVolumeWish wish) {
    wish.content = VolumeContent{};
    wish.content->is_snapshot = true;
    wish.content->handle = cut;
    return volumes().Create(wish, {});
  }

  PoolPluginWorld node_;
  TreeContents contents_;
  std::unique_ptr<PoolPluginAgent> agent_;
};

struct TreeKind {
  const char* backend;
  const char* fs_type;
  int beyond;
};

// Of both backends, each on a filesystem that can bound it.
class TreeBackendTest : public TreePoolTest, public ::testing::WithParamInterface<TreeKind> {
 protected:
  void SetUp() override { Start(GetParam().fs_type); }
  static std::string Backend() { return GetParam().backend; }
  // What a write beyond the limit is.
  static int Beyond() { return GetParam().beyond; }
};

}  // namespace volumed
