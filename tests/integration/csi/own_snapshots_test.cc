// Snapshots, clones and groups of the real daemon as a CSI driver, whose pool is on a filesystem
// that shares blocks: what is in them, while the volumes are in use and the daemon is killed.
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "integration/csi/own_volumes_fixture.h"

namespace volumed::own_snapshots_test {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::GroupController;
using ::csi::v1::VolumeContentSource;

class OwnSnapshotsTest : public OwnVolumesFixture {
 protected:
  OwnSnapshotsTest() : OwnVolumesFixture("xfs", 2048 * kMiB) {}

  // The id; "" if it was refused.
  std::string Cut(const std::string& name, const std::string& volume) const {
    ::csi::v1::CreateSnapshotRequest request;
    request.set_name(name);
    request.set_source_volume_id(volume);
    ::csi::v1::CreateSnapshotResponse response;
    EXPECT_EQ(Call<Controller>(&Controller::Stub::CreateSnapshot, request, &response), "");
    EXPECT_TRUE(response.snapshot().ready_to_use());
    return response.snapshot().snapshot_id();
  }
  std::string DeleteCut(const std::string& id) const {
    ::csi::v1::DeleteSnapshotRequest request;
    request.set_snapshot_id(id);
    ::csi::v1::DeleteSnapshotResponse response;
    return Call<Controller>(&Controller::Stub::DeleteSnapshot, request, &response);
  }
  ::csi::v1::VolumeGroupSnapshot CutGroup(const std::string& name,
                                          const std::vector<std::string>& volumes) const {
    ::csi::v1::CreateVolumeGroupSnapshotRequest request;
    request.set_name(name);
    for (const std::string& volume : volumes) request.add_source_volume_ids(volume);
    ::csi::v1::CreateVolumeGroupSnapshotResponse response;
    EXPECT_EQ(Call<GroupController>(&GroupController::Stub::CreateVolumeGroupSnapshot, request,
                                    &response),
              "");
    return response.group_snapshot();
  }
  std::string DeleteGroup(const std::string& id) const {
    ::csi::v1::DeleteVolumeGroupSnapshotRequest request;
    request.set_group_snapshot_id(id);
    ::csi::v1::DeleteVolumeGroupSnapshotResponse response;
    return Call<GroupController>(&GroupController::Stub::DeleteVolumeGroupSnapshot, request,
                                 &response);
  }
  std::string CreateFrom(const std::string& name, const VolumeContentSource& source,
                         bool is_block) const {
    ::csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(32 * kMiB);
    *request.add_volume_capabilities() = CapabilityOf(is_block);
    *request.mutable_volume_content_source() = source;
    ::csi::v1::CreateVolumeResponse response;
    EXPECT_EQ(Call<Controller>(&Controller::Stub::CreateVolume, request, &response), "");
    return response.volume().volume_id();
  }
  static VolumeContentSource OfSnapshot(const std::string& id) {
    VolumeContentSource source;
    source.mutable_snapshot()->set_snapshot_id(id);
    return source;
  }
  static VolumeContentSource OfVolume(const std::string& id) {
    VolumeContentSource source;
    source.mutable_volume()->set_volume_id(id);
    return source;
  }
  void Have(const std::string& id, bool is_block, int n) const {
    ASSERT_EQ(Stage(id, is_block, n), "");
    ASSERT_EQ(Publish(id, is_block, n), "");
  }
  void Leave(const std::string& id, int n) const {
    ASSERT_EQ(Unpublish(id, n), "");
    ASSERT_EQ(Unstage(id, n), "");
  }
  // What is in a volume that is made of the snapshot, which is gone again afterwards.
  std::string ReadCut(const std::string& snapshot) const {
    const std::string id = CreateFrom("look", OfSnapshot(snapshot), /*is_block=*/false);
    Have(id, /*is_block=*/false, kPlaces - 1);
    const std::string text = ReadVolume(/*is_block=*/false, kPlaces - 1);
    Leave(id, kPlaces - 1);
    EXPECT_EQ(Delete(id), "");
    return text;
  }
  // "" if the pool is as it was before anything was made in it.
  std::string LeftInPool() const {
    const auto is_empty = [this] { return VolumesInPool() == 0 && CutsInPool() == 0; };
    if (Eventually(kPatience, is_empty)) return "";
    return std::to_string(VolumesInPool()) + " volumes, " + std::to_string(CutsInPool()) + " cuts";
  }

  void CutAndRestore(bool is_block) {
    const std::string source = Create("source", is_block);
    ASSERT_NO_FATAL_FAILURE(Have(source, is_block, 0));
    ASSERT_EQ(WriteVolume(is_block, "before"), "before");
    ASSERT_NO_FATAL_FAILURE(Restart());
    const std::string snapshot = Cut("one", source);
    ASSERT_NE(snapshot, "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Cut("one", source), snapshot);
    ASSERT_EQ(WriteVolume(is_block, "after"), "after");

    const std::string restored = CreateFrom("restored", OfSnapshot(snapshot), is_block);
    ASSERT_NE(restored, "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(CreateFrom("restored", OfSnapshot(snapshot), is_block), restored);
    ASSERT_NO_FATAL_FAILURE(Have(restored, is_block, 1));
    EXPECT_EQ(ReadVolume(is_block, 1), "before");
    EXPECT_EQ(ReadVolume(is_block, 0), "after") << "both are in use at once";

    ASSERT_EQ(DeleteCut(snapshot), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(DeleteCut(snapshot), "");
    EXPECT_EQ(ReadVolume(is_block, 1), "before") << "of a snapshot that is gone";
    ASSERT_NO_FATAL_FAILURE(Leave(source, 0));
    ASSERT_NO_FATAL_FAILURE(Leave(restored, 1));
    EXPECT_EQ(LeftOnNode(), "");
    EXPECT_EQ(Delete(source), "");
    EXPECT_EQ(Delete(restored), "");
    EXPECT_EQ(LeftInPool(), "");
  }
};

TEST_F(OwnSnapshotsTest, ASnapshotOfFilesInUseLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(CutAndRestore(/*is_block=*/false));
}

TEST_F(OwnSnapshotsTest, ASnapshotOfABlockVolumeInUseLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(CutAndRestore(/*is_block=*/true));
}

TEST_F(OwnSnapshotsTest, ACloneHasWhatItsSourceHadAndIsOnItsOwnFromThenOn) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string source = Create("source", /*is_block=*/false);
  ASSERT_NO_FATAL_FAILURE(Have(source, /*is_block=*/false, 0));
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "shared"), "shared");
  const std::string first = CreateFrom("first", OfVolume(source), /*is_block=*/false);
  ASSERT_NO_FATAL_FAILURE(Have(first, /*is_block=*/false, 1));
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 1), "shared");
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "first", 1), "first");
  const std::string second = CreateFrom("second", OfVolume(first), /*is_block=*/false);
  ASSERT_NO_FATAL_FAILURE(Have(second, /*is_block=*/false, 2));
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 0), "shared");
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 2), "first") << "the clone of a clone";
  ASSERT_NO_FATAL_FAILURE(Leave(source, 0));
  EXPECT_EQ(Delete(source), "") << "its clones have nothing of it";
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 1), "first");
  ASSERT_NO_FATAL_FAILURE(Leave(first, 1));
  ASSERT_NO_FATAL_FAILURE(Leave(second, 2));
  EXPECT_EQ(Delete(first), "");
  EXPECT_EQ(Delete(second), "");
  EXPECT_EQ(LeftInPool(), "");
}

// A number is written to one volume, and once it is on the disk to the other.
TEST_F(OwnSnapshotsTest, OfAGroupNoVolumeHasWhatWasWrittenAfterSomethingThatAnotherLacks) {
  constexpr int kRounds = 10;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string first = Create("first", /*is_block=*/false);
  const std::string second = Create("second", /*is_block=*/false);
  ASSERT_NO_FATAL_FAILURE(Have(first, /*is_block=*/false, 0));
  ASSERT_NO_FATAL_FAILURE(Have(second, /*is_block=*/false, 1));
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "0", 0), "0");
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "0", 1), "0");
  {
    const std::jthread writer([this](const std::stop_token& stop) {
      for (int i = 1; !stop.stop_requested(); ++i) {
        for (const int n : {0, 1}) {
          EXPECT_EQ(WriteVolume(/*is_block=*/false, std::to_string(i), n), std::to_string(i));
        }
      }
    });
    uint64_t last = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto group = CutGroup("group " + std::to_string(round), {first, second});
      ASSERT_EQ(group.snapshots_size(), 2);
      uint64_t of_first = 0;
      uint64_t of_second = 0;
      for (const auto& member : group.snapshots()) {
        const std::string text = ReadCut(member.snapshot_id());
        const std::optional<uint64_t> number = ParseUint64(text);
        ASSERT_TRUE(number.has_value()) << text;
        (member.source_volume_id() == first ? of_first : of_second) = *number;
      }
      EXPECT_GE(of_first, of_second) << "in round " << round;
      EXPECT_LE(of_first, of_second + 1) << "in round " << round;
      EXPECT_GT(of_first, last) << "the writer goes on between two groups";
      last = of_first;
      ASSERT_EQ(DeleteGroup(group.group_snapshot_id()), "");
    }
  }
  ASSERT_NO_FATAL_FAILURE(Leave(first, 0));
  ASSERT_NO_FATAL_FAILURE(Leave(second, 1));
  EXPECT_EQ(Delete(first), "");
  EXPECT_EQ(Delete(second), "");
  EXPECT_EQ(LeftInPool(), "");
}

}  // namespace
}  // namespace volumed::own_snapshots_test
