// What becomes of a process is decided by systemd's job, whose end is waited for; against a systemd
// that is one thread and one script.
#include "os/process_scope.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

constexpr char kObject[] = "/org/freedesktop/systemd1";
constexpr char kManager[] = "org.freedesktop.systemd1.Manager";
constexpr char kJob[] = "/org/freedesktop/systemd1/job/17";
constexpr char kName[] = "volumed-mount-0123456789abcdef-4711.scope";
constexpr pid_t kPid = 4711;

// systemd's private socket, for one caller.
class FakeSystemd {
 public:
  using Script = std::function<void(FakeSystemd&, sd_bus_message* call)>;

  // `script` is what is done with the one call; without, the caller is not even greeted.
  explicit FakeSystemd(Script script) : script_(std::move(script)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, places().socket.c_str(), sizeof(address.sun_path) - 1);
    listening_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    if (script_) thread_ = std::thread([this] { Serve(); });
  }
  ~FakeSystemd() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  FakeSystemd(const FakeSystemd&) = delete;
  FakeSystemd& operator=(const FakeSystemd&) = delete;

  ScopePlaces places() const {
    return {temp_.path() + "/private", temp_.path(), std::chrono::seconds(30)};
  }
  Status Move(ScopePlaces places) const { return MoveToScope(kPid, kName, "a test", places); }
  Status Move() const { return Move(places()); }

  // For scripts.
  void Answer(sd_bus_message* call) { EXPECT_GE(sd_bus_reply_method_return(call, "o", kJob), 0); }
  void Refuse(sd_bus_message* call, const char* why) {
    EXPECT_GE(sd_bus_reply_method_errorf(call, "org.freedesktop.systemd1.UnitExists", "%s", why),
              0);
  }
  void EndJob(const char* job, const char* result) {
    EXPECT_GE(
        sd_bus_emit_signal(bus_, kObject, kManager, "JobRemoved", "uoss", 17, job, kName, result),
        0);
  }
  void MoveProcess() {
    const std::string directory = temp_.path() + "/" + std::to_string(kPid);
    std::filesystem::create_directory(directory);
    std::ofstream(directory + "/cgroup") << "0::/system.slice/" << kName << "\n";
  }
  void HangUp() { gone_ = true; }

 private:
  void Serve() {
    const int caller = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) return;  // nobody came
    sd_bus_new(&bus_);
    sd_bus_set_fd(bus_, caller, caller);
    sd_bus_set_server(bus_, 1, sd_id128_t{});
    EXPECT_GE(sd_bus_start(bus_), 0);
    while (!gone_) {
      sd_bus_message* message = nullptr;
      const int rc = sd_bus_process(bus_, &message);
      if (message != nullptr &&
          sd_bus_message_is_method_call(message, kManager, "StartTransientUnit") > 0) {
        script_(*this, message);
      }
      sd_bus_message_unref(message);
      if (rc < 0 || (rc == 0 && sd_bus_wait(bus_, UINT64_MAX) < 0)) break;  // the caller left
    }
    sd_bus_flush_close_unref(bus_);
  }

  const TempDirectory temp_;
  const Script script_;
  Descriptor listening_;
  sd_bus* bus_ = nullptr;
  bool gone_ = false;
  std::thread thread_;
};

void ExpectFailure(const Status& moved, const std::string& why) {
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code(), Code::kUnavailable);
  EXPECT_TRUE(moved.error().maybe_applied());
  EXPECT_NE(moved.error().message().find(kName), std::string::npos) << moved.error().message();
  EXPECT_NE(moved.error().message().find(why), std::string::npos) << moved.error().message();
}

TEST(ProcessScopeTest, IsThereWhenTheJobIsDone) {
  std::string unit;
  FakeSystemd systemd([&unit](FakeSystemd& self, sd_bus_message* call) {
    const char* name = nullptr;
    EXPECT_GT(sd_bus_message_read(call, "ss", &name, nullptr), 0);
    unit = name;
    self.Answer(call);
    // Its socket tells of all jobs.
    self.EndJob("/org/freedesktop/systemd1/job/16", "failed");
    self.MoveProcess();
    self.EndJob(kJob, "done");
  });
  const Status moved = systemd.Move();
  EXPECT_TRUE(moved.ok()) << moved.error().ToString();
  EXPECT_EQ(unit, kName);
}

TEST(ProcessScopeTest, AJobMayEndBeforeItsStartIsAnswered) {
  FakeSystemd systemd([](FakeSystemd& self, sd_bus_message* call) {
    self.MoveProcess();
    self.EndJob(kJob, "done");
    self.Answer(call);
  });
  const Status moved = systemd.Move();
  EXPECT_TRUE(moved.ok()) << moved.error().ToString();
}

TEST(ProcessScopeTest, AJobThatFailsIsAnErrorWithItsResult) {
  for (const char* result : {"failed", "canceled", "timeout"}) {
    FakeSystemd systemd([result](FakeSystemd& self, sd_bus_message* call) {
      self.Answer(call);
      self.EndJob(kJob, result);
    });
    ExpectFailure(systemd.Move(), std::string("ended: ") + result);
  }
}

TEST(ProcessScopeTest, ADoneJobIsNotBelievedWhenTheProcessIsElsewhere) {
  FakeSystemd systemd([](FakeSystemd& self, sd_bus_message* call) {
    self.Answer(call);
    self.EndJob(kJob, "done");
  });
  ExpectFailure(systemd.Move(), "the process is not in ");
}

TEST(ProcessScopeTest, ARefusalIsToldInSystemdsWords) {
  FakeSystemd systemd(
      [](FakeSystemd& self, sd_bus_message* call) { self.Refuse(call, "Unit already exists."); });
  ExpectFailure(systemd.Move(), "Unit already exists.");
}

TEST(ProcessScopeTest, AJobThatDoesNotEndIsNotWaitedForBeyondTheDeadline) {
  FakeSystemd systemd([](FakeSystemd& self, sd_bus_message* call) {
    self.MoveProcess();
    self.Answer(call);
    self.EndJob("/org/freedesktop/systemd1/job/18", "done");
  });
  ScopePlaces places = systemd.places();
  places.patience = std::chrono::milliseconds(100);
  ExpectFailure(systemd.Move(places), "start ");
}

TEST(ProcessScopeTest, ASystemdThatDoesNotGreetIsNotWaitedForBeyondTheDeadline) {
  FakeSystemd systemd(nullptr);
  ScopePlaces places = systemd.places();
  places.patience = std::chrono::milliseconds(20);
  ExpectFailure(systemd.Move(places), "in time");
}

TEST(ProcessScopeTest, ASystemdThatGoesIsNotWaitedFor) {
  FakeSystemd systemd([](FakeSystemd& self, sd_bus_message* call) {
    self.Answer(call);
    self.HangUp();
  });
  ExpectFailure(systemd.Move(), "start ");
}

TEST(ProcessScopeTest, NamesTellTheKindThePlaceAndTheProcess) {
  const std::string name = ScopeName("mount", "/a/b", 4711);
  EXPECT_EQ(name.rfind("volumed-mount-", 0), 0u) << name;
  EXPECT_TRUE(name.ends_with("-4711.scope")) << name;
  EXPECT_EQ(name.size(), std::string("volumed-mount-0123456789abcdef-4711.scope").size());
  EXPECT_NE(name, ScopeName("mount", "/a/c", 4711));
  EXPECT_EQ(name, ScopeName("mount", "/a/b", 4711));
}

TEST(ProcessScopeTest, WithoutSystemdThereIsAReasonAndAnError) {
  const auto why_not = WhyNoScopes();
  if (!why_not) GTEST_SKIP() << "skipped: systemd runs this machine";
  EXPECT_FALSE(why_not->empty());
  const Status moved = MoveToScope(::getpid(), ScopeName("test", "/", ::getpid()), "a test");
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code(), Code::kUnavailable);
  EXPECT_NE(moved.error().message().find("/run/systemd/private"), std::string::npos)
      << moved.error().message();
}

}  // namespace
}  // namespace volumed
