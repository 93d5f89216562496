// A node with a pool and with what is to be imported into it, for the tests of pool/pool_import.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "pool/pool_import.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {

inline const std::string kOldDirectory = kPoolPath + "/old";
inline const std::string kOldImage = kOldDirectory + "/disk.img";
inline const std::string kImportAgentRoot = "/var/lib/volumed";
inline const std::string kImportDriver = "pool.volumed.io";

// A file; with a filesystem on it, if one is named.
inline void AddOldImage(FakeKernel& node, const std::string& path, const std::string& fs_type,
                        int64_t bytes = 16 * kMiB) {
  Must(node.DoAside(SetFileSize{.path = {path, ""}, .make = true, .bytes = bytes}));
  if (fs_type.empty()) return;
  const AnyAnswer attached = Must(node.DoAside(AttachLoop{.path = {path, ""}, .block_size = 512}));
  const IdentifiedDevice& device = std::get<AttachedLoop>(attached).device;
  Must(node.DoAside(FormatDevice{.device = device.path,
                                 .expected = device.facts.identity,
                                 .fs_type = fs_type,
                                 .fs_uuid = "uuid-of-old",
                                 .options = {}}));
  Must(node.DoAside(DetachLoops{{path, ""}}));
}

// What outlives the agents. `fs_type`: the filesystem that the pool lies on.
struct PoolImportWorld : PoolWorld {
  explicit PoolImportWorld(std::string fs_type = "xfs") : type(std::move(fs_type)) {
    FakeDevice disk;
    disk.fs_type = type;
    disk.usage = "filesystem";
    disk.identity.uuid = "of-the-pool";
    disk.identity.size_bytes = int64_t{1} << 40;
    kernel.AddDevice("/dev/pool", disk);
    MountPool();
    // A pool is made of an empty directory, so that what is old comes after it.
    PoolAgent first(*this);
    const Status recovered = first.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
    kernel.AddDirectory(kOldDirectory);
    kernel.AddDirectory(kImportAgentRoot);
  }
  void MountPool() { Aside(Mount{type, "/dev/pool", {kPoolPath, ""}, {}}); }
  void Reboot() {
    kernel.Reboot();
    store.PowerLoss();
    MountPool();
  }
  void AddImage(const std::string& path, const std::string& fs_type, int64_t bytes = 16 * kMiB) {
    AddOldImage(kernel, path, fs_type, bytes);
  }
  AttachedLoop Attach(const std::string& path, bool read_only = false) {
    return Aside(AttachLoop{
        .path = {path, ""}, .read_only = read_only, .direct_io = false, .block_size = 512});
  }
  void Detach(const std::string& path) { Aside(DetachLoops{{path, ""}}); }
  std::vector<LoopEntry> LoopsOf(const std::string& path) {
    return Aside(ListLoops{{path, ""}}).loops;
  }

  const std::string type;
};

inline ImportParts PartsOfImport(PoolAgent& agent, Kernel& kernel) {
  return {.volumes = *agent.volumes,
          .kernel = kernel,
          .driver = kImportDriver,
          .node = "n1",
          .agent_root = kImportAgentRoot};
}

template <typename T>
Error FailureOfImport(const Result<T>& result) {
  return result.ok() ? Error::NotApplied(Code::kUnknown, "it has not failed") : result.error();
}

class PoolImportTest : public ::testing::Test {
 protected:
  explicit PoolImportTest(const std::string& fs_type = "xfs") : world_(fs_type) { StartAgent(); }
  void StartAgent() {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_);
    const Status recovered = agent_->Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
  }
  PoolVolumes& volumes() { return *agent_->volumes; }
  ImportParts Parts() { return PartsOfImport(*agent_, world_.kernel); }
  Result<ImportPlan> Look(const std::string& source, const std::string& pool = "",
                          int64_t size_bytes = 0) {
    return PlanImport(
        Parts(), {.source = source, .pool = pool, .pv_name = "", .size_bytes = size_bytes}, {});
  }
  // Why it is refused; empty if it is not.
  std::string Refused(const std::string& source, const std::string& pool = "",
                      int64_t size_bytes = 0) {
    const Result<ImportPlan> plan = Look(source, pool, size_bytes);
    if (plan.ok()) return "";
    EXPECT_FALSE(plan.error().maybe_applied()) << plan.error().ToString();
    return plan.error().message();
  }
  PoolVolumeRecord Imported(const std::string& source, const std::string& pool = "",
                            int64_t size_bytes = 0) {
    const ImportPlan done = Must(DoImport(Parts(), Must(Look(source, pool, size_bytes)), {}));
    return Must(volumes().Find(done.volume));
  }
  static std::string NotesOf(const ImportPlan& plan) {
    std::string all;
    for (const std::string& note : plan.notes) all += note + "\n";
    return all;
  }
  static std::string HandleOf(const ImportPlan& plan) {
    return std::get<CsiPersistentVolumeSource>(plan.object.spec.source).volume_handle;
  }

  PoolImportWorld world_;
  std::unique_ptr<PoolAgent> agent_;
};

}  // namespace volumed
