#include "cli/client.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

struct Reported {
  ExitCode code;
  std::string text;
};

Reported Report(const grpc::Status& status) {
  testing::internal::CaptureStderr();
  const ExitCode code = ReportFailure(status, "/run/s.sock");
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(ClientTest, AnAgentThatAnsweredWithUnavailableWasReportedAsNoAgent) {
  v1::ErrorDetail detail;
  detail.set_outcome("NotApplied");
  const Reported answered =
      Report({grpc::StatusCode::UNAVAILABLE, "the records of the last run are not loaded yet",
              detail.SerializeAsString()});
  EXPECT_EQ(answered.code, kExitError);
  EXPECT_EQ(answered.text, "volumectl: the records of the last run are not loaded yet\n");
  const Reported nobody = Report({grpc::StatusCode::UNAVAILABLE, "connection refused"});
  EXPECT_EQ(nobody.code, kExitUnreachable);
  EXPECT_EQ(nobody.text, "volumectl: no agent answers at /run/s.sock: connection refused\n");
}

// A file that the disk's filesystem holds immutable was told as a role that does not suffice.
TEST(ClientTest, WhatTheNodeRefusesTheAgentIsNoMatterOfTheCallersRole) {
  v1::ErrorDetail detail;
  detail.set_outcome("NotApplied");
  EXPECT_EQ(Report({grpc::StatusCode::PERMISSION_DENIED, "store Pod default/a: EPERM",
                    detail.SerializeAsString()})
                .code,
            kExitError);
  EXPECT_EQ(Report({grpc::StatusCode::PERMISSION_DENIED, "needs role admin"}).code, kExitForbidden);
}

TEST(ClientTest, NobodyAnswersAtASocketThatIsNotThere) {
  Client client("/nonexistent/volumed.sock", std::chrono::seconds(5));
  v1::GetSourcesResponse response;
  const grpc::Status status =
      client.Call(&v1::VolumeAgent::Stub::GetSources, v1::GetSourcesRequest(), &response);
  EXPECT_EQ(Report(status).code, kExitUnreachable);
}

}  // namespace
}  // namespace volumed
