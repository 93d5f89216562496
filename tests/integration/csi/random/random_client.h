// One of many CSI callers that do what comes to their mind: calls in good and in bad order, of
// volumes that others work on, too, with answers held against what the model knows.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "csi.grpc.pb.h"
#include "integration/csi/random/random_world.h"

namespace volumed::random_clients {

inline constexpr int64_t kMiB = int64_t{1} << 20;
// By how much a volume may grow; one that is made of another has room for all that may have.
inline constexpr int64_t kMostGrowth = 16 * kMiB;

// Within that each call has its answer, however many there are.
inline constexpr std::chrono::milliseconds kAnswered = std::chrono::minutes(2);

// Where things are. A CO has one place for staging each volume, one where it writes, and one where
// it reads alone.
struct Places {
  std::string endpoint;
  std::string co;
  std::string pool;
  std::string elsewhere;  // outside of the roots of targets
  std::string node;
  int64_t pool_bytes = 0;

  std::string Staging(int slot) const { return co + "/stage-" + std::to_string(slot); }
  std::string Pod(int slot) const { return co + "/pod-" + std::to_string(slot); }
  std::string Target(int slot) const { return Pod(slot) + "/v"; }
  std::string Reader(int slot) const { return Pod(slot) + "/r"; }
};

::csi::v1::VolumeCapability CapabilityOf(VolumeKind kind);

// Threads: one.
class Client {
 public:
  Client(World& world, const Places& places, uint64_t seed, int number);

  // Until the run is over.
  void Run();

  // ---- single calls, also for who cleans up ----
  grpc::Status Create(size_t slot);
  grpc::Status Delete(const SharedVolume& volume);
  grpc::Status Stage(const SharedVolume& volume, const std::string& path);
  grpc::Status Unstage(const SharedVolume& volume, const std::string& path);
  grpc::Status Publish(const SharedVolume& volume, const std::string& path);
  grpc::Status Unpublish(const SharedVolume& volume, const std::string& path);
  grpc::Status ControllerPublish(const SharedVolume& volume);
  grpc::Status ControllerUnpublish(const SharedVolume& volume);
  grpc::Status DeleteSnapshots(size_t slot, const std::vector<SharedSnapshot>& snapshots);
  // All volumes, and all snapshots, that are listed; a call for each page.
  void ListVolumes();
  void ListSnapshots();
  // Whether the content could be read; what it is, is held against the model.
  bool Verify(const SharedVolume& volume, const std::string& path);

 private:
  using Code = grpc::StatusCode;
  using Codes = std::initializer_list<grpc::StatusCode>;
  template <typename Service, typename Request, typename Response>
  using Method = grpc::Status (Service::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // The daemon that is up gets the call; some give up soon.
  template <typename Service, typename Request, typename Response>
  grpc::Status Send(Method<Service, Request, Response> method, const Request& request,
                    Response* response);
  std::shared_ptr<grpc::Channel> Channel();
  std::chrono::milliseconds DrawDeadline();
  void Rest(const grpc::Status& status);

  size_t Dice(size_t sides);
  bool OneIn(size_t sides) { return Dice(sides) == 0; }
  std::string Name(const std::string& what);

  // Whether an answer may be, whatever the state is: what may be tried again, and `finals`.
  void Hold(const std::string& rpc, const std::string& about, const grpc::Status& status,
            Codes finals);
  // Likewise of a call about the volume, of which `exists` is watched: one that is gone has no call
  // that succeeds, and one that is there is found.
  void HoldOfVolume(const std::string& rpc, const VolumeTruth& volume, const grpc::Status& status,
                    Codes finals, const CallNote& note, size_t exists);
  void Violate(const std::string& what);

  // ---- what it does ----
  void Act();
  void Advance(size_t slot);
  void TakeDown(const SharedVolume& volume);
  void ActOnVolume(const SharedVolume& volume);
  void Grow(const SharedVolume& volume);
  void GrowOnNode(const SharedVolume& volume);
  void Measure(const SharedVolume& volume);
  void Get(const SharedVolume& volume);
  void Validate(const SharedVolume& volume);
  void AskCapacity();
  std::string StagingFor(const VolumeTruth& volume);
  std::string TargetFor(const VolumeTruth& volume);

  // ---- plans (random_client_snapshots.cc) ----
  SharedVolumePlan FreshVolumePlan(size_t slot);
  SharedVolume VolumeWithContent();
  SharedSnapshotPlan FreshSnapshotPlan(bool is_group);
  void ActOnSnapshots();
  void Snapshot(size_t slot, const SharedSnapshotPlan& plan);
  void Group(size_t slot, const SharedSnapshotPlan& plan);
  void HoldSnapshotMade(const std::string& rpc, size_t slot, const SharedSnapshotPlan& plan,
                        const grpc::Status& status, const CallNote& note,
                        const std::vector<ToldSnapshot>& told, const SnapshotSlot& before);
  grpc::Status DeleteOne(const SnapshotTruth& snapshot);
  void DeleteMember(const SnapshotTruth& snapshot);
  grpc::Status DeleteGroup(const std::vector<SharedSnapshot>& members);

  // ---- content (random_client_data.cc) ----
  void Write(const SharedVolume& volume);
  std::string Learn(const VolumeTruth& volume, const Blocks& blocks);

  // ---- calls that must be refused (random_bad_calls.cc) ----
  void ActBadly();
  void CreateBadly();
  void NameBadly();
  void PlaceBadly();
  void ListBadly();
  void SnapshotBadly();
  void UseTheDead();
  void Expect(const std::string& what, const grpc::Status& status, Codes codes);

  World& world_;
  const Places places_;
  const int number_;
  std::mt19937_64 random_;
  uint64_t named_ = 0;
  size_t focus_ = 0;
  uint64_t channel_of_ = 0;  // the daemon that it leads to
  std::shared_ptr<grpc::Channel> channel_;
};

// A connection leads to one daemon: the next one has another socket.
template <typename Service, typename Request, typename Response>
grpc::Status Client::Send(Method<Service, Request, Response> method, const Request& request,
                          Response* response) {
  world_.AwaitUp();
  world_.CountCall();
  const auto stub = Service::NewStub(Channel());
  grpc::ClientContext context;
  const auto begun = std::chrono::steady_clock::now();
  context.set_deadline(std::chrono::system_clock::now() + DrawDeadline());
  grpc::Status status = (*stub.*method)(&context, request, response);
  if (std::chrono::steady_clock::now() - begun >= kAnswered) {
    Violate(std::string(Service::service_full_name()) + " has not answered a call");
  }
  Rest(status);
  return status;
}

}  // namespace volumed::random_clients
