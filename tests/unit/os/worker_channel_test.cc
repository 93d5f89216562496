#include "os/worker_channel.h"
#include "fakes/must.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace volumed {
namespace {

class WorkerChannelTest : public ::testing::Test {
 protected:
  WorkerChannelTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    left_ = std::make_unique<WorkerChannel>(Descriptor(ends[0]));
    right_ = std::make_unique<WorkerChannel>(Descriptor(ends[1]));
  }

  // What arrives on the right of what is sent on the left.
  std::string Cross(const std::string& body, bool as_memfd) {
    EXPECT_TRUE(left_->Send(MessageKind::kBody, body, as_memfd).ok());
    return Must(right_->Receive(true)).value().body;
  }

  std::unique_ptr<WorkerChannel> left_;
  std::unique_ptr<WorkerChannel> right_;
};

TEST_F(WorkerChannelTest, BodiesOfEverySizeCross) {
  for (const size_t size : {size_t{0}, size_t{1}, kMaxInlineBody - 1, kMaxInlineBody,
                            kMaxInlineBody + 1, size_t{5} << 20}) {
    const std::string body(size, 'x');
    EXPECT_EQ(Cross(body, false), body) << size;
    EXPECT_EQ(Cross(body, true), body) << size;
  }
}

TEST_F(WorkerChannelTest, KindsAndOrderAreKept) {
  ASSERT_TRUE(left_->Send(MessageKind::kCancel, "").ok());
  ASSERT_TRUE(left_->Send(MessageKind::kProgress, "12").ok());
  EXPECT_EQ((*right_->Receive(true))->kind, MessageKind::kCancel);
  auto second = right_->Receive(true);
  EXPECT_EQ((*second)->kind, MessageKind::kProgress);
  EXPECT_EQ((*second)->body, "12");
}

TEST_F(WorkerChannelTest, NothingToReceiveIsUnavailable) {
  auto message = right_->Receive(false);
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code(), Code::kUnavailable);
}

TEST_F(WorkerChannelTest, AClosedEndIsSeenOnBothSides) {
  ASSERT_TRUE(left_->Send(MessageKind::kBody, "last").ok());
  left_.reset();
  EXPECT_EQ((*right_->Receive(true))->body, "last");
  auto end = right_->Receive(true);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
  auto sent = right_->Send(MessageKind::kBody, "x");
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().sys_errno(), EPIPE);
}

// A memfd that its sender can still write to could change while it is read.
TEST_F(WorkerChannelTest, ABodyThatIsNotSealedIsRefused) {
  const Descriptor memory(::memfd_create("body", MFD_CLOEXEC));
  ASSERT_EQ(::write(memory.get(), "x", 1), 1);
  char header[2] = {'B', 'm'};
  iovec part = {header, sizeof(header)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.get();
  std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  ASSERT_EQ(::sendmsg(left_->fd(), &message, 0), 2);
  EXPECT_EQ(right_->Receive(true).error().code(), Code::kDataLoss);
}

TEST_F(WorkerChannelTest, APacketThatIsTooShortIsRefused) {
  ASSERT_EQ(::send(left_->fd(), "B", 1, 0), 1);
  EXPECT_EQ(right_->Receive(true).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace volumed
