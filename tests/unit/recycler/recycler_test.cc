#include "recycler/recycler.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace volumed {
namespace {

using Kind = RecyclerPodChange::Kind;

// A cluster with one recycler pod, whose life is written down beforehand.
class ScriptedPods final : public RecyclerPodRunner {
 public:
  Result<std::unique_ptr<RecyclerPodWatch>> WatchPod(const std::string& name_space,
                                                     const std::string& name) override {
    calls.push_back("watch " + name_space + "/" + name);
    if (watch_error) return *watch_error;
    return std::unique_ptr<RecyclerPodWatch>(std::make_unique<Watch>(*this));
  }
  Status CreatePod(const Pod& pod, const CallOptions&) override {
    calls.push_back("create " + pod.metadata.name_space + "/" + pod.metadata.name);
    if (!pod.metadata.generate_name.empty()) calls.push_back("with a generated name");
    if (create_error) return *create_error;
    if (!pods.insert(pod.metadata.name).second) {
      return Error::NotApplied(Code::kAlreadyExists, "exists");
    }
    return OkStatus();
  }
  Status DeletePod(const std::string& name_space, const std::string& name,
                   const CallOptions&) override {
    calls.push_back("delete " + name_space + "/" + name);
    if (delete_error) return *delete_error;
    pods.erase(name);
    return OkStatus();
  }

  void Change(Kind kind, PodPhase phase, const std::string& message = "") {
    RecyclerPodChange change;
    change.kind = kind;
    change.phase = phase;
    change.event_type = EventType::kWarning;
    change.message = message;
    changes.push_back(change);
  }

  std::set<std::string> pods;
  std::deque<RecyclerPodChange> changes;  // then the watch is closed
  std::optional<Error> watch_error, create_error, delete_error, next_error;
  std::vector<std::string> calls;

 private:
  class Watch final : public RecyclerPodWatch {
   public:
    explicit Watch(ScriptedPods& pods) : pods_(pods) {}
    Result<std::optional<RecyclerPodChange>> Next(const CallOptions&) override {
      if (pods_.next_error) return *pods_.next_error;
      if (pods_.changes.empty()) return std::optional<RecyclerPodChange>();
      std::optional<RecyclerPodChange> change = pods_.changes.front();
      pods_.changes.pop_front();
      return change;
    }

   private:
    ScriptedPods& pods_;
  };
};

class RecyclerTest : public ::testing::Test {
 protected:
  Status Recycle() {
    Pod pod;
    pod.metadata.name_space = "default";
    pod.metadata.generate_name = "pv-recycler-";
    return RecycleVolumeByWatchingPodUntilCompletion(
        "pv-1", pod, pods_,
        [this](EventType type, const std::string& message) {
          events_.push_back((type == EventType::kWarning ? "Warning " : "Normal ") + message);
        },
        {});
  }
  std::string ErrorOf(const Status& status) {
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().message();
  }

  ScriptedPods pods_;
  std::vector<std::string> events_;
};

TEST_F(RecyclerTest, WatchesCreatesWaitsAndDeletes) {
  pods_.Change(Kind::kAdded, PodPhase::kPending);
  pods_.Change(Kind::kEvent, PodPhase::kUnknown, "Pulling image");
  pods_.Change(Kind::kModified, PodPhase::kRunning);
  pods_.Change(Kind::kModified, PodPhase::kSucceeded);
  ASSERT_TRUE(Recycle().ok());
  EXPECT_EQ(pods_.calls, (std::vector<std::string>{"watch default/recycler-for-pv-1",
                                                   "create default/recycler-for-pv-1",
                                                   "delete default/recycler-for-pv-1"}));
  EXPECT_EQ(events_, (std::vector<std::string>{"Warning Pulling image"}));
  EXPECT_TRUE(pods_.pods.empty());
}

TEST_F(RecyclerTest, EveryBadEndIsNamedAndThePodIsDeleted) {
  const struct {
    Kind kind;
    PodPhase phase;
    std::string message;
    std::string error;
  } cases[] = {
      {Kind::kModified, PodPhase::kFailed, "disk on fire", "disk on fire"},
      {Kind::kAdded, PodPhase::kFailed, "", "pod failed, pod.Status.Message unknown"},
      {Kind::kDeleted, PodPhase::kUnknown, "", "recycler pod was deleted"},
      {Kind::kError, PodPhase::kUnknown, "", "recycler pod watcher failed"},
  };
  for (const auto& c : cases) {
    pods_.changes.clear();
    pods_.Change(c.kind, c.phase, c.message);
    const Status status = Recycle();
    EXPECT_EQ(ErrorOf(status), "failed to recycle volume: " + c.error);
    EXPECT_TRUE(status.error().maybe_applied()) << "content may be gone";
    EXPECT_TRUE(pods_.pods.empty());
  }
}

TEST_F(RecyclerTest, AWatchThatEndsIsAFailure) {
  EXPECT_EQ(ErrorOf(Recycle()),
            "failed to recycle volume: recycler pod \"recycler-for-pv-1\" watch channel had been "
            "closed");
  pods_.next_error = Error::NotApplied(Code::kDeadlineExceeded, "too late");
  const Status late = Recycle();
  EXPECT_EQ(ErrorOf(late), "failed to recycle volume: too late");
  EXPECT_TRUE(late.error().maybe_applied());
}

TEST_F(RecyclerTest, AnOldPodIsDeletedAndTheNextTryRecycles) {
  pods_.pods = {"recycler-for-pv-1"};
  const Status status = Recycle();
  EXPECT_EQ(ErrorOf(status), "old recycler pod found, will retry later");
  EXPECT_TRUE(pods_.pods.empty());
  pods_.Change(Kind::kAdded, PodPhase::kSucceeded);
  EXPECT_TRUE(Recycle().ok());
}

TEST_F(RecyclerTest, AnOldPodThatStaysIsNamed) {
  pods_.pods = {"recycler-for-pv-1"};
  pods_.delete_error = Error::NotApplied(Code::kUnavailable, "API is away");
  EXPECT_EQ(ErrorOf(Recycle()),
            "failed to delete old recycler pod default/recycler-for-pv-1: API is away");
}

TEST_F(RecyclerTest, WithoutAWatchOrAPodNothingIsDeleted) {
  pods_.watch_error = Error::NotApplied(Code::kUnavailable, "no watch");
  EXPECT_EQ(ErrorOf(Recycle()), "no watch");
  EXPECT_EQ(pods_.calls.size(), 1u);
  pods_.watch_error.reset();
  pods_.create_error = Error::NotApplied(Code::kPermissionDenied, "quota");
  const Status refused = Recycle();
  EXPECT_EQ(ErrorOf(refused), "unexpected error creating recycler pod: quota");
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(pods_.calls.size(), 3u);
}

TEST_F(RecyclerTest, APodThatCannotBeDeletedMakesItFailUnlessWorseHappened) {
  pods_.delete_error = Error::NotApplied(Code::kUnavailable, "API is away");
  pods_.Change(Kind::kAdded, PodPhase::kSucceeded);
  EXPECT_EQ(ErrorOf(Recycle()), "failed to delete recycler pod: API is away");
  pods_.pods.clear();
  pods_.Change(Kind::kAdded, PodPhase::kFailed, "worse");
  EXPECT_EQ(ErrorOf(Recycle()), "failed to recycle volume: worse");
}

}  // namespace
}  // namespace volumed
