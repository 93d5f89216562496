#include "snapshot/snapshot_contents.h"

#include <utility>

namespace volumed {
namespace {

class HeldSnapshot final : public HeldContent {
 public:
  HeldSnapshot(SnapshotEngine& engine, std::string id) : engine_(engine), id_(std::move(id)) {}
  ~HeldSnapshot() override { engine_.Release(id_); }
  HeldSnapshot(const HeldSnapshot&) = delete;
  HeldSnapshot& operator=(const HeldSnapshot&) = delete;

  const std::string& cut_id() const override { return id_; }

 private:
  SnapshotEngine& engine_;
  const std::string id_;
};

}  // namespace

Result<std::unique_ptr<HeldContent>> SnapshotContents::Hold(const VolumeContent& content,
                                                            const std::string& for_volume,
                                                            const CallOptions& call) {
  if (content.driver != engine_.driver()) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        "a content of driver " + content.driver + " is not in the pools of " + engine_.driver());
  }
  ASSIGN_OR_RETURN(const SnapshotRecord held,
                   content.is_snapshot ? engine_.Hold(content.handle)
                                       : engine_.HoldForClone(content.handle, for_volume, call));
  return std::unique_ptr<HeldContent>(std::make_unique<HeldSnapshot>(engine_, held.id));
}

}  // namespace volumed
