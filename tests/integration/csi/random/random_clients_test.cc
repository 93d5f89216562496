// Many callers of the real daemon as a CSI driver, each doing at random what comes to its mind,
// while the daemon and its workers are killed: each answer is one that the state allows, what was
// written is there, a snapshot is one moment, and in the end nothing is left over.
//
// The whole proof is VOLUMED_RANDOM_CLIENTS=200 VOLUMED_RANDOM_CALLS=100000.
//
// VOLUMED_SEED: what is drawn, though not how the threads meet. VOLUMED_RANDOM_CLIENTS (20) and
// VOLUMED_RANDOM_CALLS (5,000) say how much; VOLUMED_RANDOM_SECONDS (55; 0 is no limit, which is
// the default if the number of calls is given) ends it earlier on a slow machine.
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "integration/csi/own_volumes_fixture.h"
#include "integration/csi/random/random_client.h"
#include "run_numbers.h"

namespace volumed::random_clients {
namespace {

namespace fs = std::filesystem;
using ::csi::v1::Controller;
using ::csi::v1::GroupController;

constexpr uint64_t kFewClients = 20;
constexpr uint64_t kFewCalls = 5'000;
constexpr uint64_t kFewSeconds = 120;  // 15 of a quiet machine's are enough

uint64_t Clients() { return NumberOfRun("VOLUMED_RANDOM_CLIENTS", kFewClients); }
// Several clients have each slot.
size_t VolumeSlots() { return std::max<size_t>(4, Clients() / 2); }
size_t SnapshotSlots() { return std::max<size_t>(3, Clients() / 4); }
size_t GroupSlots() { return std::max<size_t>(1, Clients() / 10); }
// For the largest volumes in all slots, with their snapshots; the file is sparse.
int64_t PoolMiB() { return static_cast<int64_t>(VolumeSlots() + SnapshotSlots() + 8) * 512; }

class RandomClientsTest : public OwnVolumesFixture {
 protected:
  RandomClientsTest() : OwnVolumesFixture("xfs", 2 * PoolMiB() * OwnVolumesFixture::kMiB) {}

  void SetUp() override {
    OwnVolumesFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    places_ = {.endpoint = endpoint(),
               .co = co(),
               .pool = pool(),
               .elsewhere = scratch() + "/elsewhere",
               .node = "n1",
               .pool_bytes = PoolMiB() * OwnVolumesFixture::kMiB};
    fs::create_directory(places_.elsewhere);
    for (int slot = 0; slot < static_cast<int>(VolumeSlots()); ++slot) {
      fs::create_directories(places_.Staging(slot));
      fs::create_directories(places_.Pod(slot));
    }
    settings["csi-profile"] = "central";
    // Less than the disk has, so that the room is what was promised to nobody, to the byte.
    settings["pool-capacity"] = "{fast: " + std::to_string(PoolMiB()) + "Mi}";
    seed_ = NumberOfRun("VOLUMED_SEED", std::random_device()());
    random_.seed(seed_);
  }
  void TearDown() override {
    for (int slot = 0; slot < static_cast<int>(VolumeSlots()) && disk_; ++slot) {
      for (const std::string& place :
           {places_.Target(slot), places_.Reader(slot), places_.Staging(slot)}) {
        ::umount2(place.c_str(), MNT_DETACH);
      }
    }
    OwnVolumesFixture::TearDown();
  }

  size_t Draw(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(random_); }

  void RunClients(World& world);
  void KillSomebody(World& world);
  void EndAll(World& world);
  void NextDaemon(World& world);
  void Leave(Client& cleaner, const SharedVolume& volume);
  void CheckContent(World& world, Client& cleaner, const SharedVolume& volume);
  void EndVolume(World& world, Client& cleaner, const SharedVolume& volume);
  void CheckSnapshot(World& world, Client& cleaner, const SharedSnapshot& snapshot);
  template <typename Service, typename Request, typename Response>
  void EndDoubts(const std::map<std::string, Request>& calls,
                 grpc::Status (Service::Stub::*rpc)(grpc::ClientContext*, const Request&,
                                                    Response*));
  void EndUnknown();
  int64_t Room() const;
  std::string LeftRows();
  std::string LeftAtPlaces() const;

  // As a CO does it; what must not be the client says itself.
  static void Insist(const std::string& what, const std::function<grpc::Status()>& call) {
    grpc::Status status;
    const bool done = Eventually(2 * kPatience, [&] {
      status = call();
      return status.ok();
    });
    EXPECT_TRUE(done) << what << ": " << status.error_code() << ": " << status.error_message();
  }

  Places places_;
  uint64_t seed_ = 0;
  std::mt19937_64 random_;
  std::map<std::string, int> kills_;
  int checked_ = 0;  // volumes whose content was read in the end
};

// ---- the run ------------------------------------------------------------------------------------

void RandomClientsTest::KillSomebody(World& world) {
  ASSERT_TRUE(AgentRuns()) << "the daemon has ended by itself";
  std::this_thread::sleep_for(Milliseconds(Draw(30)));
  const std::vector<pid_t> workers = Workers();
  const size_t victim = Draw(3);  // a worker, the daemon, or both
  if (victim != 1 && !workers.empty()) ::kill(workers[Draw(workers.size() - 1)], SIGKILL);
  ++kills_[victim == 0 ? "worker" : victim == 1 ? "daemon" : "both"];
  if (victim == 0) return;
  world.SetUp(false);
  KillAgent();
  // Sometimes calls come while it starts.
  if (Draw(3) == 0) {
    StartAgent();
  } else {
    StartReadyAgent();
  }
  world.SetUp(true);
  // The file of the pool's disk gets no larger than what is in the pool.
  if (kills_["daemon"] % 8 == 7) (void)RunCommand({"fstrim", pool()});
}

void RandomClientsTest::RunClients(World& world) {
  // More clients make as many calls sooner, and a daemon that is hardly ever there does nothing.
  const uint64_t scale = std::max<uint64_t>(1, Clients() / 40);
  const uint64_t least_calls = 150 * scale;
  const uint64_t most_calls = 450 * scale;
  world.SetUp(true);
  std::vector<std::thread> threads;
  for (int number = 1; number <= static_cast<int>(Clients()); ++number) {
    threads.emplace_back([this, &world, number] { Client(world, places_, seed_, number).Run(); });
  }
  uint64_t next = least_calls;
  while (!world.IsOver() && !HasFatalFailure()) {
    std::this_thread::sleep_for(Milliseconds(5));
    if (world.calls() < next) continue;
    KillSomebody(world);
    next = world.calls() + least_calls + Draw(most_calls - least_calls);
  }
  // Whoever waits for it goes on, and ends.
  world.SetUp(true);
  while (HasFatalFailure() && !world.IsOver()) world.Violate("the daemon does not run");
  for (std::thread& thread : threads) thread.join();
}

// ---- the end ------------------------------------------------------------------------------------

// What is in doubt of calls that an earlier daemon had is known once a call to this one is done.
void RandomClientsTest::NextDaemon(World& world) {
  world.SetUp(false);
  KillAgent();
  StartReadyAgent();
  world.SetUp(true);
}

void RandomClientsTest::Leave(Client& cleaner, const SharedVolume& volume) {
  std::vector<std::string> published;
  std::vector<std::string> staged;
  for (const auto& [path, fact] : volume->published) published.push_back(path);
  for (const auto& [path, fact] : volume->staged) staged.push_back(path);
  for (const std::string& path : published) {
    Insist("unpublish", [&] { return cleaner.Unpublish(volume, path); });
  }
  for (const std::string& path : staged) {
    Insist("unstage", [&] { return cleaner.Unstage(volume, path); });
  }
}

// REQUIRES: it is staged nowhere, and no other volume is at its places.
void RandomClientsTest::CheckContent(World& world, Client& cleaner, const SharedVolume& volume) {
  constexpr int kMostDoubts = 3;
  const std::string staging = places_.Staging(volume->slot);
  const std::string target = places_.Target(volume->slot);
  // One whose deletion is in doubt may be gone; of one that is known to be there that is a
  // violation.
  bool is_gone = false;
  Insist("stage", [&] {
    const grpc::Status staged = cleaner.Stage(volume, staging);
    is_gone = staged.error_code() == grpc::StatusCode::NOT_FOUND;
    return is_gone ? grpc::Status::OK : staged;
  });
  if (is_gone) return;
  bool is_checked = false;
  for (int i = 0; i < kMostDoubts && !is_checked && !HasFailure(); ++i) {
    if (i > 0) NextDaemon(world);
    Insist("publish", [&] { return cleaner.Publish(volume, target); });
    is_checked = cleaner.Verify(volume, target);
  }
  EXPECT_TRUE(is_checked) << "the content of " << volume->id;
  checked_ += is_checked ? 1 : 0;
  Leave(cleaner, volume);
}

void RandomClientsTest::EndVolume(World& world, Client& cleaner, const SharedVolume& volume) {
  CheckContent(world, cleaner, volume);
  Insist("give back", [&] { return cleaner.ControllerUnpublish(volume); });
  Insist("delete", [&] { return cleaner.Delete(volume); });
}

// What is in a volume that is made of it. All slots are free.
void RandomClientsTest::CheckSnapshot(World& world, Client& cleaner,
                                      const SharedSnapshot& snapshot) {
  VolumePlan plan;
  plan.name = "of " + snapshot->id;
  plan.kind = snapshot->of->plan->kind;
  plan.bytes = snapshot->of->plan->bytes + kMostGrowth;
  plan.of_snapshot = snapshot;
  world.GiveUp(0, world.VolumeAt(0).plan);
  (void)world.PlanVolume(0, std::make_shared<const VolumePlan>(plan));
  Insist("restore", [&] { return cleaner.Create(0); });
  const SharedVolume restored = world.VolumeAt(0).volume;
  ASSERT_NE(restored, nullptr);
  EndVolume(world, cleaner, restored);
}

// Until it is told what became of it: what is only begun is in no list.
template <typename Service, typename Request, typename Response>
void RandomClientsTest::EndDoubts(const std::map<std::string, Request>& calls,
                                  grpc::Status (Service::Stub::*rpc)(grpc::ClientContext*,
                                                                     const Request&, Response*)) {
  for (const auto& [name, request] : calls) {
    std::string error;
    const bool is_told = Eventually(2 * kPatience, [&, one = request] {
      Response response;
      error = Call<Service>(rpc, one, &response);
      // UNAVAILABLE, ABORTED and DEADLINE_EXCEEDED.
      return !error.starts_with("14:") && !error.starts_with("10:") && !error.starts_with("4:");
    });
    EXPECT_TRUE(is_told) << name << ": " << error;
  }
}

// What was made by a call that nobody answered.
void RandomClientsTest::EndUnknown() {
  ::csi::v1::ListSnapshotsResponse snapshots;
  ASSERT_EQ(Call<Controller>(&Controller::Stub::ListSnapshots, ::csi::v1::ListSnapshotsRequest(),
                             &snapshots),
            "");
  for (const auto& entry : snapshots.entries()) {
    ::csi::v1::DeleteVolumeGroupSnapshotRequest group;
    group.set_group_snapshot_id(entry.snapshot().group_snapshot_id());
    ::csi::v1::DeleteVolumeGroupSnapshotResponse group_gone;
    ::csi::v1::DeleteSnapshotRequest one;
    one.set_snapshot_id(entry.snapshot().snapshot_id());
    ::csi::v1::DeleteSnapshotResponse one_gone;
    const std::string error =
        group.group_snapshot_id().empty()
            ? Call<Controller>(&Controller::Stub::DeleteSnapshot, one, &one_gone)
            : Call<GroupController>(&GroupController::Stub::DeleteVolumeGroupSnapshot, group,
                                    &group_gone);
    EXPECT_EQ(error, "") << one.snapshot_id();
  }
  ::csi::v1::ListVolumesResponse volumes;
  ASSERT_EQ(
      Call<Controller>(&Controller::Stub::ListVolumes, ::csi::v1::ListVolumesRequest(), &volumes),
      "");
  for (const auto& entry : volumes.entries()) {
    EXPECT_EQ(OwnVolumesFixture::Delete(entry.volume().volume_id()), "");
  }
}

void RandomClientsTest::EndAll(World& world) {
  Client cleaner(world, places_, seed_, 0);
  ASSERT_NO_FATAL_FAILURE(NextDaemon(world));
  // One may be at another one's places.
  for (const SharedVolume& volume : world.volumes()) {
    if (volume->gone_at == 0) Leave(cleaner, volume);
  }
  for (const SharedVolume& volume : world.volumes()) {
    if (volume->gone_at == 0) EndVolume(world, cleaner, volume);
  }
  std::map<std::string, std::vector<SharedSnapshot>> groups;
  for (const SharedSnapshot& snapshot : world.snapshots()) {
    if (world.VersionIfThere(snapshot->exists)) CheckSnapshot(world, cleaner, snapshot);
    groups[snapshot->group.empty() ? snapshot->id : snapshot->group].push_back(snapshot);
  }
  for (const auto& [id, members] : groups) {
    std::vector<std::shared_ptr<const CutContent>> contents;
    for (const SharedSnapshot& member : members) contents.push_back(member->content);
    EXPECT_EQ(WhyNotOneMoment(contents), "") << "group " << id;
    if (members.front()->gone_at != 0) continue;
    Insist("delete " + id, [&, one = members] { return cleaner.DeleteSnapshots(0, one); });
  }
  cleaner.ListVolumes();
  cleaner.ListSnapshots();
  const World::Doubts doubts = world.doubts();
  EndDoubts<Controller>(doubts.volumes, &Controller::Stub::CreateVolume);
  EndDoubts<Controller>(doubts.snapshots, &Controller::Stub::CreateSnapshot);
  EndDoubts<GroupController>(doubts.groups, &GroupController::Stub::CreateVolumeGroupSnapshot);
  EndUnknown();
}

int64_t RandomClientsTest::Room() const {
  ::csi::v1::GetCapacityResponse response;
  EXPECT_EQ(
      Call<Controller>(&Controller::Stub::GetCapacity, ::csi::v1::GetCapacityRequest(), &response),
      "");
  return response.available_capacity();
}

// Of volumes, snapshots and what a CO has of them. The daemon is killed, and there is a copy of its
// database, as whoever opens that may change it.
std::string RandomClientsTest::LeftRows() {
  KillAgent();
  fs::create_directory(scratch() + "/rows");
  for (const char* end : {"", "-wal"}) {
    const std::string file = root() + "/volumed/records/records.db" + end;
    if (Exists(file)) fs::copy_file(file, scratch() + "/rows/records.db" + end);
  }
  const CommandResult rows = RunCommand(
      {"python3", "-c",
       "import sqlite3, sys\n"
       "rows = sqlite3.connect(sys.argv[1]).execute('SELECT kind, key, bytes FROM records')\n"
       "kinds = ('pool-volume', 'pool-cut', 'snapshot', 'snapshot-group', 'pod-volume',"
       " 'volume-device')\n"
       "for kind, key, row in rows:\n"
       "    if kind in kinds: print(kind, key, row)\n",
       scratch() + "/rows/records.db"});
  EXPECT_EQ(rows.exit_status, 0) << rows.output;
  StartReadyAgent();
  return rows.output;
}

std::string RandomClientsTest::LeftAtPlaces() const {
  std::string left = LeftOnNode();
  for (int slot = 0; slot < static_cast<int>(VolumeSlots()); ++slot) {
    for (const std::string& place : {places_.Target(slot), places_.Reader(slot)}) {
      if (Exists(place)) left += place + "\n";
    }
    if (EntriesIn(places_.Staging(slot)) != 0) left += "in " + places_.Staging(slot) + "\n";
  }
  if (EntriesIn(places_.elsewhere) != 0 || !MountsBelow(places_.elsewhere).empty()) {
    left += "in " + places_.elsewhere + "\n";
  }
  const auto is_empty = [this] { return VolumesInPool() == 0 && CutsInPool() == 0; };
  if (!Eventually(kPatience, is_empty)) {
    left += std::to_string(VolumesInPool()) + " volumes and " + std::to_string(CutsInPool()) +
            " cuts in the pool\n";
  }
  return left;
}

TEST_F(RandomClientsTest, EachAnswerIsOneThatTheStateAllowsOverKillsAndNothingIsLeftOver) {
  const bool is_given = std::getenv("VOLUMED_RANDOM_CALLS") != nullptr;
  // Without each of these the run has shown nothing of it. By chance some of them happen late.
  const World::Limits limits{
      .calls = NumberOfRun("VOLUMED_RANDOM_CALLS", kFewCalls),
      .seconds =
          static_cast<double>(NumberOfRun("VOLUMED_RANDOM_SECONDS", is_given ? 0 : kFewSeconds)),
      .must_happen = {"CreateVolume OK", "CreateVolume of a snapshot OK",
                      "CreateVolume of a volume OK", "NodeStageVolume OK", "NodePublishVolume OK",
                      "ControllerPublishVolume OK", "ControllerExpandVolume OK",
                      "CreateSnapshot OK", "CreateVolumeGroupSnapshot OK", "ListVolumes OK",
                      "DeleteVolume OK", "content of a snapshot", "verified", "written",
                      "bad calls answered"}};
  std::cout << "VOLUMED_SEED=" << seed_ << " VOLUMED_RANDOM_CLIENTS=" << Clients()
            << " VOLUMED_RANDOM_CALLS=" << limits.calls << std::endl;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const int64_t room = Room();
  EXPECT_GT(room, 0);
  World world(limits, VolumeSlots(), SnapshotSlots(), GroupSlots());
  RunClients(world);
  const uint64_t calls = world.calls();
  if (world.violations().empty() && !HasFatalFailure()) EndAll(world);
  std::cout << calls << " calls in the run, " << checked_ << " volumes read in the end\n";
  for (const auto& [what, count] : kills_) std::cout << "killed, " << what << ": " << count << "\n";
  for (const auto& [what, count] : world.counts()) std::cout << what << ": " << count << "\n";
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  ASSERT_FALSE(HasFailure()) << "again with VOLUMED_SEED=" << seed_;

  EXPECT_EQ(LeftAtPlaces(), "");
  EXPECT_EQ(Room(), room) << "what was promised was not given back";
  EXPECT_EQ(LeftRows(), "");
  EXPECT_EQ(Room(), room);
  // Else it has shown nothing.
  EXPECT_FALSE(kills_.empty());
  EXPECT_GT(checked_, 0);
  EXPECT_EQ(world.NeverHappened(), std::vector<std::string>{});
}

}  // namespace
}  // namespace volumed::random_clients
