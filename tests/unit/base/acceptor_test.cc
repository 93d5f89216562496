#include "base/acceptor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <cerrno>
#include <memory>
#include <vector>

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Without a descriptor to spare: what the test itself opened before stays open.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Descriptor lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest.get());
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class AcceptorTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(EventLoop::Create(clock_)).value();
    socket_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_TRUE(socket_.valid());
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    ASSERT_EQ(::bind(socket_.get(), address, size), 0);
    ASSERT_EQ(::listen(socket_.get(), SOMAXCONN), 0);
    ASSERT_EQ(::getsockname(socket_.get(), address, &size), 0);
  }
  void Make(AcceptorOptions options) {
    acceptor_ = std::make_unique<Acceptor>(
        std::move(socket_), *loop_, options,
        AcceptorHandlers{[this](Descriptor connection, const sockaddr_storage&) {
                           accepted_.push_back(std::move(connection));
                         },
                         [this] {
                           if (to_give_.empty()) return false;
                           to_give_.pop_back();
                           return true;
                         },
                         [this](int sys_errno) { paused_.push_back(sys_errno); }});
    ASSERT_TRUE(acceptor_->Start().ok());
  }
  // A client's sockets must be there before there are no descriptors left.
  void MakeClients(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      clients_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
  }
  void ConnectAll() {
    for (const Descriptor& client : clients_) {
      ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(address_)),
                0);
    }
  }
  void RunFor(milliseconds time) {
    loop_->PostAfter(time, [this] { loop_->Stop(); });
    loop_->Run();
  }

  RealClock clock_;
  std::unique_ptr<EventLoop> loop_;
  Descriptor socket_;
  sockaddr_in address_{};
  std::vector<Descriptor> clients_;
  std::vector<Descriptor> accepted_;
  std::vector<Descriptor> to_give_;  // one goes whenever the acceptor asks for room
  std::vector<int> paused_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, WithoutDescriptorsItLooksByATimerAndDoesNotSpin) {
  AcceptorOptions options;
  options.first_pause = milliseconds(50);
  options.longest_pause = milliseconds(200);
  Make(options);
  MakeClients(3);
  {
    const FewDescriptors few;
    ConnectAll();
    RunFor(milliseconds(1000));
    EXPECT_TRUE(accepted_.empty());
    // 50 + 100 + 200 + 200 + 200 + ...: seven tries, where a loop would make a million.
    EXPECT_GE(acceptor_->attempts(), 3u);
    EXPECT_LE(acceptor_->attempts(), 10u);
    EXPECT_EQ(paused_.size(), acceptor_->attempts());
    EXPECT_EQ(paused_[0], EMFILE);
  }
  RunFor(milliseconds(400));
  EXPECT_EQ(accepted_.size(), 3u) << "nobody was lost who waited";
}

TEST_F(AcceptorTest, TheReserveIsForWhoComesWhenNothingIsLeftAndFillsAgain) {
  AcceptorOptions options;
  options.reserved = 2;
  options.first_pause = milliseconds(20);
  options.longest_pause = milliseconds(50);
  Make(options);
  MakeClients(5);
  {
    const FewDescriptors few;
    ConnectAll();
    RunFor(milliseconds(200));
    EXPECT_EQ(accepted_.size(), 2u);
    EXPECT_LE(acceptor_->attempts(), 20u);
    // Two who end: what they give back serves the next two, in whatever order.
    accepted_.clear();
    RunFor(milliseconds(300));
    EXPECT_EQ(accepted_.size(), 2u);
  }
  accepted_.clear();
  RunFor(milliseconds(300));
  EXPECT_EQ(accepted_.size(), 1u);
  accepted_.clear();
  clients_.clear();
  MakeClients(2);
  const FewDescriptors few;
  ConnectAll();
  RunFor(milliseconds(30));
  EXPECT_EQ(accepted_.size(), 2u) << "the reserve was filled when there were descriptors again";
}

TEST_F(AcceptorTest, WhatCanBeDoneWithoutMakesRoomAtOnce) {
  AcceptorOptions options;
  options.first_pause = seconds(10);
  Make(options);
  MakeClients(3);
  for (int i = 0; i < 3; ++i) to_give_.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FewDescriptors few;
  ConnectAll();
  RunFor(milliseconds(50));
  EXPECT_EQ(accepted_.size(), 3u);
  EXPECT_TRUE(paused_.empty());
  EXPECT_LE(acceptor_->attempts(), 7u);
}

// accept(2) says EMFILE although nobody waits: whoever was accepted last made room for nobody.
TEST_F(AcceptorTest, NobodyMakesRoomForNobody) {
  Make({});
  MakeClients(1);
  for (int i = 0; i < 3; ++i) to_give_.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FewDescriptors few;
  ConnectAll();
  RunFor(milliseconds(50));
  EXPECT_EQ(accepted_.size(), 1u);
  EXPECT_EQ(to_give_.size(), 2u);
}

TEST_F(AcceptorTest, AReserveThatWasSpentWithoutAPauseFillsAgainToo) {
  AcceptorOptions options;
  options.reserved = 2;
  options.longest_pause = milliseconds(50);
  Make(options);
  for (int round = 0; round < 2; ++round) {
    clients_.clear();
    accepted_.clear();
    RunFor(milliseconds(120));
    MakeClients(2);
    const FewDescriptors few;
    ConnectAll();
    RunFor(milliseconds(20));
    EXPECT_EQ(accepted_.size(), 2u) << round;
    EXPECT_TRUE(paused_.empty());
  }
}

TEST_F(AcceptorTest, AReserveThatIsFullIsNotLookedAtAgainAndAgain) {
  AcceptorOptions options;
  options.reserved = 1;
  options.longest_pause = milliseconds(5);
  Make(options);
  MakeClients(1);
  {
    const FewDescriptors few;
    ConnectAll();
    RunFor(milliseconds(20));
  }
  EXPECT_EQ(accepted_.size(), 1u);
  RunFor(milliseconds(50));
  const uint64_t before = loop_->TakeHealth().tasks_run;
  RunFor(milliseconds(50));
  EXPECT_EQ(loop_->TakeHealth().tasks_run, before + 1) << "the end of the run alone";
}

}  // namespace
}  // namespace volumed
