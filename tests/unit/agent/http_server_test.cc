#include "agent/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// For what comes by itself; nothing is measured with it.
constexpr auto kPatience = seconds(30);

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

HttpQuestion AtOnce(std::function<std::string()> answer) {
  HttpQuestion question;
  question.ask = [answer](const HttpReply& reply) {
    reply(std::make_shared<const std::string>(answer()));
  };
  question.late = [] { return std::make_shared<const std::string>("late"); };
  return question;
}

// A connection that does what a test wants of it.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval patience{kPatience.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool connected() const { return connected_; }
  void Send(const std::string& text) {
    (void)!::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until the server closes, or `enough` bytes.
  std::string Receive(size_t enough = std::string::npos) {
    std::string answer;
    char buffer[4096];
    while (answer.size() < enough) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      answer.append(buffer, static_cast<size_t>(got));
    }
    return answer;
  }
  bool IsClosed() const {
    char byte = 0;
    const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [](LogLevel, std::string_view) {};
    log_ = std::make_unique<Logger>(options, clock_);
    handlers_.metrics = AtOnce([this] { return metrics_; });
    handlers_.unhealthy =
        AtOnce([this] { return healthy_ ? std::string() : std::string("the loop stands still"); });
    handlers_.not_ready =
        AtOnce([this] { return ready_ ? std::string() : std::string("source x is not complete"); });
  }
  void Start(const std::string& address = "127.0.0.1:0") {
    Result<Descriptor> socket = MakeHttpSocket(address);
    ASSERT_TRUE(socket.ok()) << socket.error().ToString();
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(std::move(socket).value(), handlers_, limits_, clock_, *log_);
    ASSERT_TRUE(server.ok()) << server.error().ToString();
    server_ = std::move(server).value();
  }
  uint64_t Closed(HttpServerStats::Closed why) const {
    return server_->stats().closed[static_cast<size_t>(why)];
  }
  bool OpenBecomes(size_t count) {
    return Eventually([&] { return server_->stats().open == count; });
  }
  std::string Get(const std::string& path) {
    RawClient client(server_->port());
    client.Send("GET " + path + " HTTP/1.1\r\nConnection: close\r\n\r\n");
    return client.Receive();
  }

  RealClock clock_;
  std::unique_ptr<Logger> log_;
  std::string metrics_ = "volumed_pods 3\n";
  std::atomic<bool> healthy_{true};
  std::atomic<bool> ready_{false};
  HttpHandlers handlers_;
  HttpLimits limits_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesMetricsAndProbes) {
  Start();
  httplib::Client client("127.0.0.1", server_->port());

  const auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->body, "volumed_pods 3\n");
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");

  EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto not_ready = client.Get("/readyz");
  EXPECT_EQ(not_ready->status, 503);
  EXPECT_EQ(not_ready->body, "source x is not complete\n");
  ready_ = true;
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  healthy_ = false;
  EXPECT_EQ(client.Get("/healthz")->status, 503);
  EXPECT_EQ(client.Get("/nothing")->status, 404);
  EXPECT_EQ(client.Post("/metrics")->status, 405);
}

TEST_F(HttpServerTest, HeadHasTheHeadOfGetAndNoBody) {
  Start();
  httplib::Client client("127.0.0.1", server_->port());
  const auto head = client.Head("/metrics");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->get_header_value("Content-Length"), std::to_string(metrics_.size()));
  EXPECT_TRUE(head->body.empty());
}

TEST_F(HttpServerTest, OneConnectionServesManyRequestsAndSoManyAtOnce) {
  limits_.requests_per_connection = 50;
  Start();
  httplib::Client client("127.0.0.1", server_->port());
  client.set_keep_alive(true);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(client.Get("/metrics")->status, 200);
  EXPECT_EQ(server_->stats().accepted, 1u);

  RawClient pipelining(server_->port());
  std::string requests;
  for (int i = 0; i < 60; ++i) requests += "GET /healthz HTTP/1.1\r\n\r\n";
  pipelining.Send(requests);
  const std::string answers = pipelining.Receive();
  size_t count = 0;
  for (size_t at = answers.find("200 OK"); at != std::string::npos;
       at = answers.find("200 OK", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 50u) << "the last one of a connection says that it is the last";
  EXPECT_NE(answers.rfind("Connection: close"), std::string::npos);
}

TEST_F(HttpServerTest, ALongAnswerIsCompressedForWhoAsksForIt) {
  for (int i = 0; i < 20'000; ++i) metrics_ += "volumed_x{i=\"" + std::to_string(i) + "\"} 1\n";
  Start();
  httplib::Client client("127.0.0.1", server_->port());
  const auto packed = client.Get("/metrics", {{"Accept-Encoding", "gzip"}});
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(packed->body, metrics_) << "the client unpacks it";
  const auto plain = client.Get("/metrics", {{"Accept-Encoding", "identity"}});
  EXPECT_EQ(plain->get_header_value("Content-Encoding"), "");
  EXPECT_EQ(plain->body, metrics_);
}

TEST_F(HttpServerTest, Ipv6IsServedAndItsWildcardServesIpv4Too) {
  Start("[::1]:0");
  httplib::Client client("::1", server_->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  Start("[::]:0");
  httplib::Client ipv4("127.0.0.1", server_->port());
  EXPECT_EQ(ipv4.Get("/healthz")->status, 200);
}

TEST_F(HttpServerTest, AScrapeIsAnsweredBesideAThousandSilentConnections) {
  Start();
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(silent.back()->connected()) << i;
  }
  EXPECT_NE(Get("/metrics").find("volumed_pods 3"), std::string::npos);
  EXPECT_NE(Get("/healthz").find("200 OK"), std::string::npos);
  EXPECT_LE(server_->stats().open, limits_.connections_per_peer);
  EXPECT_GE(Closed(HttpServerStats::Closed::kMadeRoom), 1000 - limits_.connections_per_peer);
}

TEST_F(HttpServerTest, WhatComesSlowlyEndsAtTheHeaderTimeoutHoweverOftenItSendsAByte) {
  limits_.header_timeout = milliseconds(300);
  Start();
  RawClient slow(server_->port());
  RawClient silent(server_->port());
  const std::string request = "GET /metrics HTTP/1.1\r\nX: " + std::string(4000, 'a');
  for (size_t i = 0; i < request.size() && !slow.IsClosed(); ++i) {
    slow.Send(request.substr(i, 1));
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_TRUE(slow.IsClosed());
  EXPECT_TRUE(Eventually([&] { return silent.IsClosed(); }));
  EXPECT_EQ(Closed(HttpServerStats::Closed::kHeaderTimeout), 2u);
  EXPECT_TRUE(OpenBecomes(0));
}

TEST_F(HttpServerTest, AConnectionWithoutAFurtherRequestEndsAtTheIdleTimeout) {
  limits_.idle_timeout = milliseconds(200);
  Start();
  RawClient client(server_->port());
  client.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_NE(client.Receive().find("200 OK"), std::string::npos);
  EXPECT_EQ(Closed(HttpServerStats::Closed::kIdle), 1u);
}

TEST_F(HttpServerTest, AClientThatDoesNotTakeItsAnswerIsClosedAndMakesRoomBefore) {
  metrics_ = std::string(size_t{32} << 20, 'x');
  limits_.connections = 4;
  limits_.connections_per_peer = 4;
  limits_.write_grace = milliseconds(0);
  Start();
  std::vector<std::unique_ptr<RawClient>> greedy;
  for (int i = 0; i < 12; ++i) {
    greedy.push_back(std::make_unique<RawClient>(server_->port()));
    greedy.back()->Send("GET /metrics HTTP/1.1\r\n\r\n");
    // Its answer is under way, more than the socket's buffers hold.
    ASSERT_FALSE(greedy.back()->Receive(1).empty()) << i;
  }
  EXPECT_NE(Get("/healthz").find("200 OK"), std::string::npos);
  EXPECT_GE(Closed(HttpServerStats::Closed::kMadeRoom), 8u);
  limits_.write_stall = milliseconds(200);
  Start();
  RawClient stalled(server_->port());
  stalled.Send("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return Closed(HttpServerStats::Closed::kWriteTimeout) == 1; }));
}

TEST_F(HttpServerTest, AClientThatTakesAByteNowAndThenIsClosedAtTheEndOfItsTime) {
  metrics_ = std::string(size_t{32} << 20, 'x');
  limits_.write_timeout = milliseconds(400);
  limits_.write_stall = seconds(20);
  Start();
  RawClient slow(server_->port());
  slow.Send("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Eventually([&] {
    slow.Receive(1);
    return Closed(HttpServerStats::Closed::kWriteTimeout) == 1;
  }));
}

TEST_F(HttpServerTest, AnswersThatNobodyTakesHaveABoundInMemory) {
  metrics_ = std::string(size_t{32} << 20, 'x');
  limits_.unsent_bytes = size_t{80} << 20;
  Start();
  std::vector<std::unique_ptr<RawClient>> greedy;
  std::string last;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(std::make_unique<RawClient>(server_->port()));
    greedy.back()->Send("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
    last = greedy.back()->Receive(16);
    ASSERT_FALSE(last.empty());
  }
  EXPECT_EQ(last.substr(0, 12), "HTTP/1.1 503") << "two of them are as much as may be under way";
  // One that takes its answer leaves room behind.
  EXPECT_GT(greedy[0]->Receive().size(), size_t{30} << 20);
  EXPECT_GT(Get("/metrics").size(), size_t{32} << 20);
}

TEST_F(HttpServerTest, OnePeerLeavesPlacesToOthers) {
  limits_.connections = 8;
  limits_.connections_per_peer = 3;
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<RawClient>(server_->port()));
  EXPECT_TRUE(Eventually([&] { return server_->stats().accepted == 8; }));
  EXPECT_EQ(server_->stats().open, 3u);
  EXPECT_TRUE(clients[0]->IsClosed());
  EXPECT_FALSE(clients[7]->IsClosed());
}

TEST_F(HttpServerTest, IfAllPlacesAreTakenTheConnectionThatWasSilentLongestMakesRoom) {
  limits_.connections = 2;
  limits_.connections_per_peer = 8;
  Start();
  const RawClient first(server_->port());
  ASSERT_TRUE(Eventually([&] { return server_->stats().accepted == 1; }));
  const RawClient second(server_->port());
  ASSERT_TRUE(Eventually([&] { return server_->stats().accepted == 2; }));
  const RawClient third(server_->port());
  EXPECT_TRUE(Eventually([&] { return first.IsClosed(); }));
  EXPECT_FALSE(second.IsClosed());
  EXPECT_EQ(Closed(HttpServerStats::Closed::kMadeRoom), 1u);
}

TEST_F(HttpServerTest, IfAllAreBeingAnsweredANewOneIsTurnedAwayAndNoneIsCutOff) {
  std::vector<HttpReply> asked;
  std::mutex mutex;
  handlers_.metrics.ask = [&](HttpReply reply) {
    const std::lock_guard lock(mutex);
    asked.push_back(std::move(reply));
  };
  limits_.connections = 2;
  limits_.connections_per_peer = 2;
  Start();
  RawClient first(server_->port());
  RawClient second(server_->port());
  first.Send("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  second.Send("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return asked.size() == 2;
  }));
  RawClient third(server_->port());
  EXPECT_EQ(third.Receive(), "");
  EXPECT_EQ(Closed(HttpServerStats::Closed::kRefused), 1u);
  for (const HttpReply& reply : asked) {
    reply(std::make_shared<const std::string>("a 1\n"));
    reply(std::make_shared<const std::string>("a second reply counts for nothing\n"));
  }
  EXPECT_NE(first.Receive().find("a 1\n"), std::string::npos);
  EXPECT_NE(second.Receive().find("a 1\n"), std::string::npos);
}

TEST_F(HttpServerTest, ASecondReplyIsNotTakenForTheAnswerOfTheNextRequest) {
  std::vector<HttpReply> asked;
  std::mutex mutex;
  const auto asked_so_far = [&] {
    const std::lock_guard lock(mutex);
    return asked.size();
  };
  handlers_.metrics.ask = [&](HttpReply reply) {
    const std::lock_guard lock(mutex);
    asked.push_back(std::move(reply));
  };
  Start();
  RawClient client(server_->port());
  client.Send("GET /metrics HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return asked_so_far() == 1; }));
  asked[0](std::make_shared<const std::string>("a 1\n"));
  ASSERT_FALSE(client.Receive(1).empty());
  client.Send("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return asked_so_far() == 2; }));
  asked[0](std::make_shared<const std::string>("again\n"));
  asked[1](std::make_shared<const std::string>("b 2\n"));
  const std::string rest = client.Receive();
  EXPECT_NE(rest.find("b 2\n"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("again"), std::string::npos) << rest;
}

TEST_F(HttpServerTest, AQuestionWithoutAReplyHasItsLateAnswerAndAReplyAfterTheServerDoesNothing) {
  HttpReply kept;
  handlers_.metrics.ask = [&](HttpReply reply) { kept = std::move(reply); };
  handlers_.metrics.patience = milliseconds(100);
  Start();
  EXPECT_NE(Get("/metrics").find("\r\n\r\nlate"), std::string::npos);
  server_.reset();
  kept(std::make_shared<const std::string>("too late"));
}

TEST_F(HttpServerTest, WhatIsNotHttpIsAnsweredAndClosed) {
  Start();
  RawClient client(server_->port());
  client.Send("\x16\x03\x01 hello\r\n" + std::string(20'000, 'x'));
  EXPECT_EQ(client.Receive().substr(0, 12), "HTTP/1.1 400");
  RawClient long_head(server_->port());
  long_head.Send("GET /" + std::string(20'000, 'x'));
  EXPECT_EQ(long_head.Receive().substr(0, 12), "HTTP/1.1 431");
  EXPECT_TRUE(OpenBecomes(0));
}

TEST_F(HttpServerTest, ATakenPortIsUnavailable) {
  Start();
  const Result<Descriptor> second = MakeHttpSocket("127.0.0.1:" + std::to_string(server_->port()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find("in use"), std::string::npos);
}

TEST_F(HttpServerTest, ABadAddressIsRefused) {
  for (const char* address :
       {"", "nonsense", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1", ":80", "127.0.0.1:8x"}) {
    EXPECT_FALSE(MakeHttpSocket(address).ok()) << address;
  }
}

TEST(HttpPeerTest, ANetworkOfIpv6IsOnePeerAndMappedAddressesAreIpv4) {
  const auto peer6 = [](const char* text) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    inet_pton(AF_INET6, text, &address.sin6_addr);
    sockaddr_storage storage{};
    std::memcpy(&storage, &address, sizeof(address));
    return HttpPeer(storage);
  };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof(address));
  EXPECT_EQ(peer6("::ffff:192.0.2.1"), HttpPeer(storage));
  EXPECT_EQ(peer6("2001:db8::1"), peer6("2001:db8::ffff:1"));
  EXPECT_NE(peer6("2001:db8::1"), peer6("2001:db8:0:1::1"));
}

}  // namespace
}  // namespace volumed
