// What clients may do to the agent from outside: connect without a word, slowly, and without end.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <thread>

#include "base/descriptor.h"
#include "integration/agent/example_pod.h"

namespace volumed::bounds_test {
namespace {

using std::chrono::seconds;

class BoundsTest : public ExamplePodTest {
 protected:
  // A connection to /metrics' port that says nothing; not valid if there is none to be had.
  Descriptor ConnectHttp() const {
    Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(metrics_port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{2, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      return {};
    }
    return client;
  }
  Descriptor ConnectControl() const {
    Descriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      return {};
    }
    return client;
  }
  size_t AgentDescriptors() const { return EntriesOf("fd"); }
  size_t AgentThreads() const { return EntriesOf("task"); }
  // What the agent used of the processor, in ticks of a hundredth of a second.
  int64_t AgentTicks() const {
    const std::string stat = ReadText("/proc/" + std::to_string(agent_pid()) + "/stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    int64_t user = 0;
    int64_t system = 0;
    fields >> user >> system;
    return user + system;
  }
  int64_t TicksOfASecond() const {
    const int64_t before = AgentTicks();
    std::this_thread::sleep_for(seconds(1));
    return AgentTicks() - before;
  }
  void SetDescriptorLimit(rlim_t limit) const {
    rlimit now{};
    ASSERT_EQ(::prlimit(agent_pid(), RLIMIT_NOFILE, nullptr, &now), 0);
    now.rlim_cur = limit;
    ASSERT_EQ(::prlimit(agent_pid(), RLIMIT_NOFILE, &now, nullptr), 0);
  }
  // What a calm agent scrapes to has each of these.
  static std::string Missing(const std::string& scrape) {
    for (const char* family :
         {"volumed_build_info", "volumed_pods", "volumed_workers", "volume_manager_total_volumes",
          "storage_operation_duration_seconds_count", "volumed_records_commits_total",
          "volumed_volume_stats_used_bytes", "volumed_metrics_collected_timestamp_seconds",
          "volumed_http_connections_closed_total", "volumed_source_complete"}) {
      if (scrape.find(std::string("\n") + family) == std::string::npos) return family;
    }
    return "";
  }
  void StartWithPod() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
    ASSERT_TRUE(Eventually(kPatience, [this] { return Missing(HttpGet("/metrics")).empty(); }));
  }

 private:
  size_t EntriesOf(const std::string& directory) const {
    std::error_code error;
    const std::filesystem::directory_iterator entries(
        "/proc/" + std::to_string(agent_pid()) + "/" + directory, error);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
};

TEST_F(BoundsTest, AScrapeIsWholeBesideAThousandSilentConnections) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  const size_t threads = AgentThreads();
  const size_t descriptors = AgentDescriptors();
  std::vector<Descriptor> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(ConnectHttp());
    ASSERT_TRUE(silent.back().valid()) << i;
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Missing(HttpGet("/metrics")), "");
  RecordProperty("scrape_ms", static_cast<int>(Since(start).count()));
  std::cout << "scrape beside 1000 silent connections: " << Since(start).count() << " ms, "
            << AgentThreads() - threads << " more threads, " << AgentDescriptors() - descriptors
            << " more descriptors\n";
  EXPECT_NE(HttpGet("/readyz").find(" 200 "), std::string::npos);
  EXPECT_LE(AgentThreads(), threads + 4);
  EXPECT_LE(AgentDescriptors(), descriptors + 64);
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
}

TEST_F(BoundsTest, AScrapeIsWholeBesideHeadersThatComeSlowly) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  std::vector<Descriptor> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(ConnectHttp());
    ASSERT_TRUE(slow.back().valid()) << i;
  }
  const std::string request = "GET /metrics HTTP/1.1\r\nX-Slow: ";
  for (size_t sent = 0; sent < 60; ++sent) {
    const char byte = sent < request.size() ? request[sent] : 'a';
    for (const Descriptor& client : slow) (void)!::send(client.get(), &byte, 1, MSG_NOSIGNAL);
    if (sent % 20 == 0) {
      EXPECT_EQ(Missing(HttpGet("/metrics")), "") << sent;
    }
    std::this_thread::sleep_for(Milliseconds(100));
  }
  // Whatever they still send: the time for a header is over.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return HttpGet("/metrics").find("\nvolumed_http_connections 1\n") != std::string::npos;
  }));
}

TEST_F(BoundsTest, ClientsThatDoNotTakeTheirAnswersKeepNobodyFromHis) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  std::vector<Descriptor> greedy;
  const std::string requests = [] {
    std::string text;
    for (int i = 0; i < 90; ++i) text += "GET /metrics HTTP/1.1\r\n\r\n";
    return text;
  }();
  for (int i = 0; i < 200; ++i) {
    greedy.push_back(ConnectHttp());
    ASSERT_TRUE(greedy.back().valid()) << i;
    (void)!::send(greedy.back().get(), requests.data(), requests.size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_TRUE(Eventually(seconds(10), [&] { return Missing(HttpGet("/metrics")).empty(); }));
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
}

TEST_F(BoundsTest, WithoutADescriptorLeftVolumectlIsAnsweredAndNothingSpins) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  const rlim_t few = AgentDescriptors() + 5;
  ASSERT_NO_FATAL_FAILURE(SetDescriptorLimit(few));
  std::vector<Descriptor> silent;
  for (int i = 0; i < 200; ++i) {
    Descriptor client = ConnectHttp();
    if (client.valid()) silent.push_back(std::move(client));
  }
  EXPECT_GE(silent.size(), 100u);
  const int64_t ticks = TicksOfASecond();
  std::cout << "with " << AgentDescriptors() << " of " << few << " descriptors in use: " << ticks
            << " ticks of 10 ms in a second\n";
  EXPECT_LE(ticks, 30) << "a loop that spins has a hundred";
  for (int i = 0; i < 5; ++i) {
    const CommandResult answer = Ctl({"--request-timeout", "10", "get", "pods"});
    EXPECT_EQ(answer.exit_status, 0) << answer.output;
  }
  EXPECT_TRUE(Eventually(seconds(10), [&] { return Missing(HttpGet("/metrics")).empty(); }));
  silent.clear();
  ASSERT_NO_FATAL_FAILURE(SetDescriptorLimit(1024));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Missing(HttpGet("/metrics")).empty(); }));
}

TEST_F(BoundsTest, ControlConnectionsWithoutAWordKeepNobodyOut) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  const size_t threads = AgentThreads();
  const size_t descriptors = AgentDescriptors();
  std::vector<Descriptor> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(ConnectControl());
    ASSERT_TRUE(silent.back().valid()) << i;
    if (i % 3 == 0) (void)!::send(silent.back().get(), "PRI", 3, MSG_NOSIGNAL);
  }
  const CommandResult answer = Ctl({"--request-timeout", "10", "get", "pods"});
  EXPECT_EQ(answer.exit_status, 0) << answer.output;
  std::cout << "beside 1000 silent control connections: " << AgentThreads() - threads
            << " more threads, " << AgentDescriptors() - descriptors << " more descriptors\n";
  EXPECT_LE(AgentDescriptors(), descriptors + 260);
  EXPECT_TRUE(Eventually(kPatience, [&] { return AgentDescriptors() <= descriptors + 8; }))
      << "they are closed when they go on saying nothing";
}

TEST_F(BoundsTest, WhoMayNotUseTheSocketTakesNoPlaceAtIt) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  ASSERT_EQ(::chmod(socket_path().c_str(), 0666), 0);
  const size_t descriptors = AgentDescriptors();
  // As nobody: a thousand connections, held for a while, each with the first words of a client.
  const CommandResult tried =
      RunCommand({"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                  "/usr/bin/python3", "-c",
                  "import socket,sys\n"
                  "clients=[]\n"
                  "def closed(s):\n"
                  "  try: return s.recv(1) == b''\n"
                  "  except ConnectionResetError: return True\n"
                  "for i in range(1000):\n"
                  "  s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); clients.append(s)\n"
                  "  try: s.send(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')\n"
                  "  except OSError: pass\n"
                  "print(sum(closed(s) for s in clients))\n",
                  socket_path()});
  EXPECT_EQ(tried.output, "1000\n") << "each is closed at once";
  EXPECT_LE(AgentDescriptors(), descriptors + 8);
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
}

}  // namespace
}  // namespace volumed::bounds_test
