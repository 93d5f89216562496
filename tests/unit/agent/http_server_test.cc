#include "agent/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>

namespace volumed {
namespace {

class HttpServerTest : public testing::Test {
 protected:
  HttpHandlers Handlers() {
    return {[] { return std::string("volumed_pods 3\n"); },
            [this] { return healthy_ ? std::string() : std::string("the loop stands still"); },
            [this] { return ready_ ? std::string() : std::string("source x is not complete"); }};
  }
  std::atomic<bool> healthy_{true};
  std::atomic<bool> ready_{false};
};

TEST_F(HttpServerTest, ServesMetricsAndProbes) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::Start("127.0.0.1:0", Handlers());
  ASSERT_TRUE(server.ok()) << server.error().ToString();
  httplib::Client client("127.0.0.1", (*server)->port());

  const auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->body, "volumed_pods 3\n");
  EXPECT_NE(metrics->get_header_value("Content-Type").find("version=0.0.4"), std::string::npos);

  EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto not_ready = client.Get("/readyz");
  EXPECT_EQ(not_ready->status, 503);
  EXPECT_EQ(not_ready->body, "source x is not complete\n");
  ready_ = true;
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  healthy_ = false;
  EXPECT_EQ(client.Get("/healthz")->status, 503);
  EXPECT_EQ(client.Get("/nothing")->status, 404);
}

TEST_F(HttpServerTest, ATakenPortIsUnavailable) {
  Result<std::unique_ptr<HttpServer>> first = HttpServer::Start("127.0.0.1:0", Handlers());
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<HttpServer>> second =
      HttpServer::Start("127.0.0.1:" + std::to_string((*first)->port()), Handlers());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
}

TEST_F(HttpServerTest, ABadAddressIsRefused) {
  for (const char* address : {"", "nonsense", "127.0.0.1:", "127.0.0.1:99999"}) {
    EXPECT_FALSE(HttpServer::Start(address, Handlers()).ok()) << address;
  }
}

}  // namespace
}  // namespace volumed
