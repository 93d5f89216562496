// What clients of gRPC send to the driver's socket, frame by frame: pings on a connection that they
// keep alive, calls that they have given up before they are read, and more of them than may be.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "csidriver/frame_guard.h"
#include "csidriver/frame_scanner.h"
#include "fakes/must.h"
#include "unit/csidriver/csi_server_fixture.h"

namespace volumed {
namespace {

using namespace std::string_view_literals;

// Source: RFC 9113, 3.4 and 6.
constexpr std::string_view kPrefaceAndSettings =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;
constexpr std::string_view kPing = "\0\0\10\6\0\0\0\0\0pingping"sv;
// The headers of a call of Probe, as a stream that is reset at once. Source: RFC 7541, appendix A.
constexpr std::string_view kProbeThatIsGivenUp =
    "\0\0\x45\1\4\0\0\0\1"
    "\x83\x86\x04\x16/csi.v1.Identity/Probe\x01\x09localhost"
    "\x10\x02te\x08trailers\x0f\x10\x10"
    "application/grpc"
    "\0\0\4\3\0\0\0\0\1\0\0\0\x08"sv;
constexpr size_t kFrameHeader = 9;
constexpr char kPingType = 6;
constexpr char kGoAwayType = 7;

class CsiFramesTest : public CsiServerFixture {
 protected:
  void Dial() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(settings_.socket.size(), sizeof(address.sun_path));
    settings_.socket.copy(address.sun_path, settings_.socket.size());
    connection_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        ::connect(connection_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0);
    Send(kPrefaceAndSettings);
  }
  // False if the server has closed the connection.
  bool Send(std::string_view bytes) const {
    return ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // How many frames of the type have come so far.
  int Came(char type) {
    char buffer[4096];
    for (ssize_t got = 0;
         (got = ::recv(connection_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;) {
      received_.append(buffer, static_cast<size_t>(got));
    }
    int count = 0;
    for (size_t at = 0; at + kFrameHeader <= received_.size();) {
      const auto byte = [&](size_t n) { return static_cast<uint8_t>(received_[at + n]); };
      if (received_[at + 3] == type) ++count;
      at += kFrameHeader + (byte(0) << 16 | byte(1) << 8 | byte(2));
    }
    return count;
  }

  bool IsClosed() const {
    char buffer[4096];
    ssize_t got = 1;
    while (got > 0) got = ::recv(connection_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    return got == 0 || errno != EAGAIN;
  }
  // So many calls, the first of this number; each is given up at once, or left open.
  static std::string Calls(int number, uint32_t first, bool are_given_up) {
    const size_t headers = kProbeThatIsGivenUp.size() - kFrameHeader - 4;
    std::string all;
    for (int i = 0; i < number; ++i) {
      std::string call(kProbeThatIsGivenUp);
      const uint32_t stream = first + 2 * static_cast<uint32_t>(i);
      for (const size_t frame : {size_t{0}, headers}) {
        call[frame + 7] = static_cast<char>(stream >> 8);
        call[frame + 8] = static_cast<char>(stream & 0xff);
      }
      all += are_given_up ? call : call.substr(0, headers);
    }
    return all;
  }

  Descriptor connection_;
  std::string received_;
};

// What was made for calls that are reset took memory without a bound, 4 GB in half a minute.
TEST_F(CsiFramesTest, APeerThatResetsTooManyCallsIsNotReadUntilHisTimeHasCome) {
  settings_.frames.resets_at_once = 10;
  settings_.frames.resets_per_second = 20;
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  ASSERT_TRUE(Send(Calls(50, 1, /*are_given_up=*/true)));
  ASSERT_TRUE(Becomes([&] { return lines_.all().find("held back") != std::string::npos; }));
  ASSERT_TRUE(Send(kPing));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(Came(kPingType), 0) << "it was read though forty resets are two seconds' worth";
  EXPECT_TRUE(Becomes([&] { return Came(kPingType) == 1; })) << "it was held for ever";
  ::csi::v1::ProbeResponse response;
  EXPECT_TRUE(Probe(&response).ok());
}

TEST_F(CsiFramesTest, AConnectionWithFarMoreOpenCallsThanItMayHaveIsClosed) {
  settings_.frames.open_calls = 2;
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  ASSERT_TRUE(Send(Calls(8, 1, /*are_given_up=*/false)));
  EXPECT_TRUE(Becomes([&] { return IsClosed(); }));
  ::csi::v1::ProbeResponse response;
  EXPECT_TRUE(Probe(&response).ok());
}

TEST_F(CsiFramesTest, AConnectionEndsWithItsClientThoughItIsHeldBack) {
  settings_.frames.resets_at_once = 1;
  settings_.frames.resets_per_second = 0.01;
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  const auto descriptors = [] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      ++count;
    }
    return count;
  };
  ASSERT_TRUE(Send(Calls(10, 1, /*are_given_up=*/true)));
  ASSERT_TRUE(Becomes([&] { return lines_.all().find("held back") != std::string::npos; }));
  const size_t before = descriptors();
  connection_.Reset();
  EXPECT_TRUE(Becomes([&] { return descriptors() <= before - 3; })) << "both ends of the guard";
}

TEST(FrameScannerTest, FramesAreToldHoweverTheirBytesCome) {
  const std::string bytes = std::string(kPrefaceAndSettings) + std::string(kProbeThatIsGivenUp);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameScanner scanner(24);
    std::string told;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      scanner.Scan(std::string_view(bytes).substr(at, piece), [&](const FrameHeader& frame) {
        told += std::to_string(frame.type) + ":" + std::to_string(frame.flags) + ":" +
                std::to_string(frame.stream) + " ";
      });
    }
    EXPECT_EQ(told, "4:0:0 1:4:1 3:0:1 ") << "in pieces of " << piece;
  }
}

// A client of gRPC for Go that pings each 10 s lost its connection at the third one, and with it
// the calls that were under way.
TEST_F(CsiFramesTest, AConnectionWithoutCallsIsNotClosedForThePingsOfItsClient) {
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  constexpr int kPings = 5;
  for (int sent = 1; sent <= kPings; ++sent) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_TRUE(Send(kPing));
    ASSERT_TRUE(Becomes([&] { return Came(kPingType) == sent || Came(kGoAwayType) > 0; }));
    ASSERT_EQ(Came(kGoAwayType), 0) << "after " << sent;
  }
}

TEST_F(CsiFramesTest, APeerThatSendsNothingButPingsIsTurnedAway) {
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  EXPECT_TRUE(Becomes([&] { return !Send(kPing) || Came(kGoAwayType) > 0; }));
}

// gRPC kept each answer for one that read none: 2 GB in fifteen seconds, and nobody else had an
// answer meanwhile.
TEST_F(CsiFramesTest, PingsThatAreNotAnsweredTookMemoryWithoutABound) {
  constexpr size_t kPings = 2000;
  constexpr size_t kMost = 64 + 8192 / kPing.size() + 1;  // and what was read with the last of them
  FrameGuard guard(log_, {.unanswered_pings = 64}, {});
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  connection_.Reset(pair[0]);
  const Descriptor server = Must(guard.Take(Descriptor(pair[1]), {}));
  Send(kPrefaceAndSettings);
  std::string pings;
  for (size_t i = 0; i < kPings; ++i) pings += kPing;
  ASSERT_TRUE(Send(pings));  // the buffer of the socket has room for them
  std::string got;
  const auto came = [&] {
    char buffer[4096];
    for (ssize_t size = 0;
         (size = ::recv(server.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;) {
      got.append(buffer, static_cast<size_t>(size));
    }
    return (got.size() - std::min(got.size(), kPrefaceAndSettings.size())) / kPing.size();
  };
  ASSERT_TRUE(Becomes([&] { return came() >= 64; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which all would have come
  EXPECT_LE(came(), kMost);
  std::string answer(kPing);
  answer[4] = 1;  // it acknowledges
  for (size_t answered = 0; answered < kPings; ++answered) {
    ASSERT_TRUE(Becomes([&] { return came() > answered; })) << answered << " were answered";
    ASSERT_TRUE(Becomes([&] {
      Came(kPingType);  // so that the buffers have room
      return ::send(server.get(), answer.data(), answer.size(), MSG_NOSIGNAL) > 0;
    }));
  }
  EXPECT_TRUE(Becomes([&] { return Came(kPingType) == static_cast<int>(kPings); }));
}

// It was logged as one whose request could not be read.
TEST_F(CsiFramesTest, ACallWhoseCallerHasGoneBeforeItsRequestCameIsNoMalformedOne) {
  Serve();
  ASSERT_NO_FATAL_FAILURE(Dial());
  ASSERT_TRUE(Send(kProbeThatIsGivenUp));
  ASSERT_TRUE(Send(kPing));
  ASSERT_TRUE(Becomes([&] { return Came(kPingType) == 1; })) << "all before it is read then";
  for (int other = 0; other < 20; ++other) {
    ::csi::v1::ProbeResponse response;
    ASSERT_TRUE(Probe(&response).ok());
  }
  EXPECT_EQ(lines_.all().find("rpc=Probe"), std::string::npos) << lines_.all();
}

}  // namespace
}  // namespace volumed
