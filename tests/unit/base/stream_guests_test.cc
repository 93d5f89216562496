#include "base/stream_guests.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;
constexpr GuestClass kReads{.rank = 1, .shares_few = true};
constexpr GuestClass kOperates{.rank = 2, .shares_few = false};
constexpr GuestClass kAdministers{.rank = 3, .shares_few = false};

class StreamGuestsTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(EventLoop::Create(clock_)).value();
    limits_.connections = 8;
    limits_.connections_of_users = 6;
    limits_.connections_per_user = 3;
  }
  void TearDown() override { guests_.reset(); }

  // The client's end; not valid if it was not admitted.
  Descriptor Connect(uid_t uid) { return Connect(uid, uid == 0 ? kAdministers : kOperates); }
  Descriptor Connect(uid_t uid, const GuestClass& peer_class) {
    if (!guests_) {
      guests_ = std::make_unique<StreamGuests>(*loop_, limits_,
                                               [this](Descriptor connection, const GuestClass& as) {
                                                 served_.push_back(std::move(connection));
                                                 ranks_.push_back(as.rank);
                                               });
    }
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    Descriptor client(ends[0]);
    const bool admitted = guests_->Admit(Descriptor(ends[1]), {1, uid, 0}, peer_class);
    return admitted ? std::move(client) : Descriptor();
  }
  void Say(const Descriptor& client, const std::string& words) {
    EXPECT_EQ(::send(client.get(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
    Turn();
  }
  static bool IsClosed(const Descriptor& client) {
    char byte = 0;
    const ssize_t got = ::recv(client.get(), &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && errno == ECONNRESET);  // the latter with words that nobody read
  }
  void Turn(milliseconds time = milliseconds(5)) {
    loop_->PostAfter(time, [this] { loop_->Stop(); });
    loop_->Run();
  }

  RealClock clock_;
  std::unique_ptr<EventLoop> loop_;
  GuestLimits limits_;
  std::vector<Descriptor> served_;
  std::vector<int> ranks_;
  std::unique_ptr<StreamGuests> guests_;
};

TEST_F(StreamGuestsTest, OneThatSpeaksIsServedWithEverythingItSaid) {
  const Descriptor client = Connect(kUser);
  Say(client, "PRI * HTTP/2.0\r\n");
  EXPECT_TRUE(served_.empty()) << "these are not all of the first words";
  Say(client, "\r\nSM\r\n\r\nmore");
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_EQ(ranks_[0], kOperates.rank);
  std::string said(64, '\0');
  said.resize(static_cast<size_t>(::recv(served_[0].get(), said.data(), said.size(), 0)));
  EXPECT_EQ(said, std::string(kPreface) + "more");
}

TEST_F(StreamGuestsTest, OneThatHasSpokenBeforeItIsAdmittedIsServedAtOnce) {
  const Descriptor silent = Connect(0);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const Descriptor client(ends[0]);
  ASSERT_GT(::send(client.get(), kPreface, sizeof(kPreface) - 1, MSG_NOSIGNAL), 0);
  ASSERT_TRUE(guests_->Admit(Descriptor(ends[1]), {1, kUser, 0}, kReads));
  EXPECT_EQ(served_.size(), 1u) << "without a turn of the loop, so that nobody takes its place";
  EXPECT_TRUE(guests_->MakeRoom());
  EXPECT_FALSE(guests_->MakeRoom()) << "who is served stays";
}

// Three users who might only read had all places of all users.
TEST_F(StreamGuestsTest, ReadersTookThePlacesOfWhoeverMayOperate) {
  limits_.connections_of_few = 4;
  std::vector<Descriptor> readers;
  for (const uid_t uid : {2000u, 2001u, 2002u}) {
    for (int i = 0; i < 2; ++i) {
      readers.push_back(Connect(uid, kReads));
      if (readers.back().valid()) Say(readers.back(), kPreface);
    }
  }
  EXPECT_EQ(served_.size(), 4u);
  EXPECT_FALSE(readers[4].valid());
  EXPECT_FALSE(readers[5].valid());
  EXPECT_TRUE(Connect(kUser).valid());
  EXPECT_TRUE(Connect(0).valid());
}

TEST_F(StreamGuestsTest, AReaderWhoIsSilentMakesRoomForAReader) {
  limits_.connections_of_few = 2;
  const Descriptor operates = Connect(kUser);
  const Descriptor first = Connect(2000, kReads);
  const Descriptor second = Connect(2001, kReads);
  const Descriptor third = Connect(2002, kReads);
  EXPECT_TRUE(third.valid());
  EXPECT_TRUE(IsClosed(first));
  EXPECT_FALSE(IsClosed(second));
  EXPECT_FALSE(IsClosed(operates)) << "although it has been silent longer";
}

TEST_F(StreamGuestsTest, RootsAreTheLastThatMakeRoom) {
  const Descriptor roots = Connect(0);
  const Descriptor users = Connect(kUser);
  ASSERT_TRUE(guests_->MakeRoom());
  EXPECT_TRUE(IsClosed(users)) << "although root's has been silent longer";
  EXPECT_FALSE(IsClosed(roots));
  EXPECT_TRUE(guests_->MakeRoom());
  EXPECT_TRUE(IsClosed(roots));
}

TEST_F(StreamGuestsTest, OneThatIsSilentOrSaysOtherThingsIsClosed) {
  limits_.first_words = milliseconds(50);
  const Descriptor silent = Connect(0);
  const Descriptor other = Connect(0);
  Say(other, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(IsClosed(other));
  EXPECT_FALSE(IsClosed(silent));
  Turn(milliseconds(100));
  EXPECT_TRUE(IsClosed(silent));
  EXPECT_EQ(guests_->silent(), 0u);
}

TEST_F(StreamGuestsTest, AUserWhoConnectsWithoutEndHasOnlyHisOwnPlaces) {
  const Descriptor others = Connect(kOther);
  std::vector<Descriptor> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(Connect(kUser));
    EXPECT_TRUE(clients.back().valid()) << "his oldest makes room";
  }
  EXPECT_EQ(guests_->silent(), 4u);
  EXPECT_FALSE(IsClosed(others));
  EXPECT_TRUE(IsClosed(clients[0]));
  EXPECT_FALSE(IsClosed(clients[99]));
}

TEST_F(StreamGuestsTest, WhoIsServedIsNeverCutOffAndHisPlaceIsFreeOnceHeEnds) {
  std::vector<Descriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect(kUser));
    Say(clients.back(), kPreface);
  }
  ASSERT_EQ(served_.size(), 3u);
  EXPECT_FALSE(Connect(kUser).valid());
  served_.pop_back();  // as the server does when a connection has ended
  EXPECT_TRUE(Connect(kUser).valid());
}

TEST_F(StreamGuestsTest, ADescriptorThatWasUsedAgainIsNotTakenForTheConnection) {
  std::vector<Descriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect(kUser));
    Say(clients.back(), kPreface);
  }
  const int number = served_[0].get();
  served_[0].Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Descriptor again(::fcntl(served_[0].get(), F_DUPFD_CLOEXEC, number));
  EXPECT_TRUE(Connect(kUser).valid());
}

TEST_F(StreamGuestsTest, ManyUsersTogetherLeaveRootItsPlaces) {
  std::vector<Descriptor> clients;
  for (uid_t uid = 1; uid <= 6; ++uid) {
    clients.push_back(Connect(uid));
    Say(clients.back(), kPreface);
  }
  ASSERT_EQ(served_.size(), 6u);
  EXPECT_FALSE(Connect(kUser).valid());
  const Descriptor first = Connect(0);
  const Descriptor second = Connect(0);
  EXPECT_TRUE(first.valid());
  EXPECT_TRUE(second.valid());
  EXPECT_TRUE(Connect(0).valid()) << "its first, which is silent, makes room";
  EXPECT_TRUE(IsClosed(first));
}

TEST_F(StreamGuestsTest, ASilentUserMakesRoomForAnotherAndForRootAndRootForNobodyElse) {
  std::vector<Descriptor> clients;
  clients.push_back(Connect(0));
  for (uid_t uid = 1; uid <= 6; ++uid) clients.push_back(Connect(uid));
  EXPECT_TRUE(Connect(kOther).valid());
  EXPECT_FALSE(IsClosed(clients[0]));
  EXPECT_TRUE(IsClosed(clients[1]));
}

}  // namespace
}  // namespace volumed
