// The verbs of volumectl, run in this process against an agent that answers as a test tells it to.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent.grpc.pb.h"
#include "cli/command_line.h"

namespace volumed {

// Answers as it is told to, and keeps what it was asked.
class ScriptedAgent final : public v1::VolumeAgent::Service {
 public:
  grpc::Status Wait(grpc::ServerContext*, const v1::WaitRequest* request,
                    grpc::ServerWriter<v1::WaitResponse>* out) override {
    waited_for.push_back(request->pod().uid() + " " + request->for_());
    for (const v1::WaitResponse& answer : waits) out->Write(answer);
    if (!left.empty() && request->pod().uid() == left) {
      return {grpc::StatusCode::NOT_FOUND, "there is no pod " + left};
    }
    if (request->pod().uid() != never) return grpc::Status::OK;
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "not in time"};
  }
  grpc::Status AcceptVolume(grpc::ServerContext*, const v1::AcceptVolumeRequest*,
                            v1::AcceptVolumeResponse* response) override {
    *response = accepted;
    return grpc::Status::OK;
  }
  grpc::Status Delete(grpc::ServerContext*, const v1::DeleteRequest* request,
                      v1::DeleteResponse*) override {
    deleted = *request;
    return grpc::Status::OK;
  }

  grpc::Status Retry(grpc::ServerContext*, const v1::RetryRequest*,
                     v1::RetryResponse* response) override {
    *response = retried_pod;
    return grpc::Status::OK;
  }
  grpc::Status RetryAll(grpc::ServerContext*, const v1::RetryAllRequest* request,
                        v1::RetryAllResponse* response) override {
    retried_in = request->namespace_();
    *response = retried;
    return grpc::Status::OK;
  }

  grpc::Status ForgetDriver(grpc::ServerContext*, const v1::ForgetDriverRequest* request,
                            v1::ForgetDriverResponse*) override {
    forgotten_driver = request->driver();
    forgotten_by_force = request->force();
    return forgets;
  }
  grpc::Status RetryDriver(grpc::ServerContext*, const v1::RetryDriverRequest* request,
                           v1::RetryDriverResponse* response) override {
    retried_driver = request->driver();
    response->set_reason(why_away);
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    *response = status;
    return grpc::Status::OK;
  }
  grpc::Status GetPods(grpc::ServerContext*, const v1::GetPodsRequest* request,
                       v1::GetPodsResponse* response) override {
    pages_asked.push_back(request->page());
    if (!refusal.ok() && pages_asked.size() <= refusals) return refusal;
    *response = pages.empty() ? pods : pages.at(pages_asked.size() - 1);
    return grpc::Status::OK;
  }
  grpc::Status ListObjects(grpc::ServerContext*, const v1::ListObjectsRequest* request,
                           v1::ListObjectsResponse* response) override {
    listed_kind = request->kind();
    *response = objects;
    return grpc::Status::OK;
  }
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest* request,
                        v1::DescribeResponse*) override {
    described = request->object();
    return refusal;
  }
  grpc::Status Hold(grpc::ServerContext*, const v1::HoldRequest* request,
                    v1::HoldResponse*) override {
    held = *request;
    return grpc::Status::OK;
  }
  grpc::Status ReleaseHold(grpc::ServerContext*, const v1::HoldRequest* request,
                           v1::HoldResponse*) override {
    released = *request;
    return grpc::Status::OK;
  }
  grpc::Status WatchEvents(grpc::ServerContext*, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* out) override {
    events_asked = request->object();
    out->Write(events);
    return grpc::Status::OK;
  }

  grpc::Status GetDrivers(grpc::ServerContext*, const v1::GetDriversRequest* request,
                          v1::GetDriversResponse* response) override {
    driver_asked = request->name();
    *response = drivers;
    return grpc::Status::OK;
  }
  grpc::Status GetDriverTrace(grpc::ServerContext*, const v1::GetDriverTraceRequest* request,
                              v1::GetDriverTraceResponse* response) override {
    trace_asked = *request;
    *response = trace;
    return grpc::Status::OK;
  }
  grpc::Status CallDriver(grpc::ServerContext*, const v1::CallDriverRequest* request,
                          v1::CallDriverResponse* response) override {
    driver_call = *request;
    response->set_response_json(driver_answer);
    return grpc::Status::OK;
  }

  grpc::Status GetPools(grpc::ServerContext*, const v1::GetPoolsRequest* request,
                        v1::GetPoolsResponse* response) override {
    pool_asked = request->name();
    *response = pools;
    return grpc::Status::OK;
  }
  grpc::Status GetPoolVolumes(grpc::ServerContext*, const v1::GetPoolVolumesRequest* request,
                              v1::GetPoolVolumesResponse* response) override {
    pool_volume_asked = request->id();
    for (const v1::PoolVolume& one : pool_volumes.volumes()) {
      if (request->id().empty() || request->id() == one.id()) *response->add_volumes() = one;
    }
    return grpc::Status::OK;
  }
  grpc::Status DeletePoolVolume(grpc::ServerContext*, const v1::DeletePoolVolumeRequest* request,
                                v1::DeletePoolVolumeResponse* response) override {
    pool_volumes_deleted.push_back(request->id());
    if (request->id() == "vol-had") {
      return {grpc::StatusCode::FAILED_PRECONDITION, "PersistentVolume data has it"};
    }
    response->set_warning(what_stays);
    return grpc::Status::OK;
  }
  grpc::Status GetSnapshots(grpc::ServerContext*, const v1::GetSnapshotsRequest* request,
                            v1::GetSnapshotsResponse* response) override {
    snapshots_asked = *request;
    *response = snapshots;
    return grpc::Status::OK;
  }
  grpc::Status CreateSnapshot(grpc::ServerContext*, const v1::CreateSnapshotRequest* request,
                              v1::CreateSnapshotResponse* response) override {
    snapshot_created = *request;
    *response->mutable_snapshot() = snapshots.snapshots(0);
    return grpc::Status::OK;
  }
  grpc::Status DeleteSnapshot(grpc::ServerContext*, const v1::DeleteSnapshotRequest* request,
                              v1::DeleteSnapshotResponse*) override {
    snapshot_deleted = request->id();
    return grpc::Status::OK;
  }
  grpc::Status CancelSnapshot(grpc::ServerContext*, const v1::CancelSnapshotRequest* request,
                              v1::CancelSnapshotResponse*) override {
    snapshot_cancelled = request->id();
    return grpc::Status::OK;
  }
  grpc::Status RestoreSnapshot(grpc::ServerContext*, const v1::RestoreSnapshotRequest* request,
                               v1::RestoreSnapshotResponse* response) override {
    snapshot_restored = *request;
    *response = restored;
    return grpc::Status::OK;
  }
  grpc::Status ImportVolume(grpc::ServerContext*, const v1::ImportVolumeRequest* request,
                            v1::ImportVolumeResponse* response) override {
    import_asked = *request;
    if (!refusal.ok()) return refusal;
    *response = imported;
    return grpc::Status::OK;
  }
  grpc::Status WatchSnapshot(grpc::ServerContext*, const v1::WatchSnapshotRequest* request,
                             grpc::ServerWriter<v1::WatchSnapshotResponse>* out) override {
    snapshot_watched = *request;
    for (const v1::WatchSnapshotResponse& answer : progress) out->Write(answer);
    return grpc::Status::OK;
  }

  v1::ObjectRef described;
  v1::GetPoolsResponse pools;
  std::string pool_asked = "nobody asked";
  v1::GetPoolVolumesResponse pool_volumes;
  std::string pool_volume_asked = "nobody asked";
  std::vector<std::string> pool_volumes_deleted;
  std::string what_stays;  // of a pool's volume that is deleted
  v1::GetSnapshotsResponse snapshots;
  v1::GetSnapshotsRequest snapshots_asked;
  v1::CreateSnapshotRequest snapshot_created;
  std::string snapshot_deleted, snapshot_cancelled;
  v1::RestoreSnapshotRequest snapshot_restored;
  v1::RestoreSnapshotResponse restored;
  v1::ImportVolumeRequest import_asked;
  v1::ImportVolumeResponse imported;
  v1::WatchSnapshotRequest snapshot_watched;
  std::vector<v1::WatchSnapshotResponse> progress;
  v1::GetDriversResponse drivers;
  std::string driver_asked = "nobody asked";
  v1::GetDriverTraceResponse trace;
  v1::GetDriverTraceRequest trace_asked;
  v1::CallDriverRequest driver_call;
  std::string driver_answer;
  grpc::Status refusal;        // of GetPods, Describe and ImportVolume
  size_t refusals = SIZE_MAX;  // how many calls of GetPods are refused before one is answered
  v1::GetStatusResponse status;
  v1::GetPodsResponse pods;                // the answer, if there are no pages
  std::vector<v1::GetPodsResponse> pages;  // the answers, one after the other
  std::vector<std::string> pages_asked;
  v1::ListObjectsResponse objects;
  std::string listed_kind;
  v1::HoldRequest held, released;
  v1::WatchEventsResponse events;
  v1::ObjectRef events_asked;
  v1::RetryResponse retried_pod;
  v1::RetryAllResponse retried;
  std::string retried_in;
  std::string retried_driver, forgotten_driver;
  bool forgotten_by_force = false;
  grpc::Status forgets;
  std::string why_away;
  std::vector<v1::WaitResponse> waits;
  std::vector<std::string> waited_for;
  std::string never = "no pod";  // the uid of one that is not as it is waited for
  std::string left;              // the uid of a pod that leaves while it is waited for
  v1::AcceptVolumeResponse accepted;
  v1::DeleteRequest deleted;
};

// Runs volumectl in this process, against that agent.
class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    std::string name = std::filesystem::temp_directory_path() / "volumectl-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    socket_ = directory_ + "/agent.sock";
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&agent_);
    server_ = builder.BuildAndStart();
  }
  ~CommandsTest() override {
    server_->Shutdown();
    std::filesystem::remove_all(directory_);
  }

  struct Printed {
    int code = kExitError;
    std::string out, err;
  };
  // What `volumectl WORDS...` prints.
  void AddPods(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      v1::Pod* const pod = agent_.pods.add_pods();
      pod->set_namespace_("default");
      pod->set_name(name);
      pod->set_uid("uid-" + name);
    }
  }
  Printed Run(std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", socket_});
    return RunLine(std::move(words));
  }
  // The whole line, as it is.
  Printed RunLine(std::vector<std::string> words) {
    words.insert(words.begin(), "volumectl");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Printed printed;
    printed.code = RunCommandLine(static_cast<int>(argv.size()), argv.data());
    printed.out = testing::internal::GetCapturedStdout();
    printed.err = testing::internal::GetCapturedStderr();
    return printed;
  }
  Printed WaitForEnd() { return Run({"wait", "web", "--for", "gone", "--timeout", "20"}); }
  Printed Accept() { return Run({"accept", "pv", "d1"}); }

  std::string directory_;
  std::string socket_;
  ScriptedAgent agent_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace volumed
