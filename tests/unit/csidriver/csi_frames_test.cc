// What clients of gRPC send to the driver's socket, frame by frame: pings on a connection that they
// keep alive, and a call that they have given up before it is read.
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
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

  Descriptor connection_;
  std::string received_;
};

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
