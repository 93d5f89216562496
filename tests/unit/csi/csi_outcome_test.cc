// What each failure of a CSI call means.
#include "csi/rpc/csi_outcome.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/printable_text.h"
#include "csi.pb.h"

namespace volumed {
namespace {

constexpr int kLastCode = 16;

const CsiMethod& Stage() { return *FindCsiMethod("NodeStageVolume"); }
const CsiMethod& Stats() { return *FindCsiMethod("NodeGetVolumeStats"); }

TEST(CsiOutcomeTest, EveryCodeOfAMutatingRpcIsDecided) {
  const std::set<Code> maybe{Code::kCancelled,         Code::kUnknown, Code::kDeadlineExceeded,
                             Code::kResourceExhausted, Code::kAborted, Code::kInternal,
                             Code::kUnavailable,       Code::kDataLoss};
  for (int number = 1; number <= kLastCode; ++number) {
    const auto code = static_cast<Code>(number);
    EXPECT_EQ(CsiOutcome(CsiRpcKind::kMutating, code),
              maybe.contains(code) ? Outcome::kMaybeApplied : Outcome::kNotApplied)
        << CodeName(code);
  }
}

TEST(CsiOutcomeTest, WhatKubeletTakesAsUncertainIsMaybeApplied) {
  for (const Code code : {Code::kCancelled, Code::kDeadlineExceeded, Code::kUnavailable,
                          Code::kResourceExhausted, Code::kAborted}) {
    EXPECT_EQ(CsiOutcome(CsiRpcKind::kMutating, code), Outcome::kMaybeApplied) << CodeName(code);
  }
}

TEST(CsiOutcomeTest, AReadOnlyRpcNeverChangesAnything) {
  for (int number = 1; number <= kLastCode; ++number) {
    EXPECT_EQ(CsiOutcome(CsiRpcKind::kReadOnly, static_cast<Code>(number)), Outcome::kNotApplied);
  }
}

TEST(CsiOutcomeTest, OnlyUnimplementedIsNeverRepeated) {
  for (int number = 1; number <= kLastCode; ++number) {
    const auto code = static_cast<Code>(number);
    CsiRepeat expected = CsiRepeat::kLater;
    if (code == Code::kUnimplemented) expected = CsiRepeat::kNever;
    if (code == Code::kCancelled) expected = CsiRepeat::kAtOnce;
    EXPECT_EQ(CsiRepeatOf(code), expected) << CodeName(code);
  }
}

TEST(CsiOutcomeTest, OfAnErrorThatIsWithheldTheCodeIsShownAndWhatThisSideSaysIsNotWithheld) {
  const auto memory = std::make_shared<CsiSecretMemory>();
  memory->Withhold("it is known");
  const CsiSecrets secrets(memory);
  EXPECT_EQ(
      CsiError("d", Stage(), {.code = Code::kInternal, .message = "hunter2"}, secrets).message(),
      "d: NodeStageVolume: Internal: [withheld, as it may have a secret in it, until it is "
      "known]");
  EXPECT_EQ(CsiError("d", Stage(), {.code = Code::kInternal, .message = " "}, secrets).message(),
            "d: NodeStageVolume: Internal: the driver gave no reason");
  EXPECT_EQ(CsiError("d", Stage(),
                     {.code = Code::kUnavailable, .message = "no connection", .never_sent = true},
                     secrets)
                .message(),
            "d: NodeStageVolume: Unavailable: no connection");
}

TEST(CsiOutcomeTest, ACallThatNeverReachedTheDriverIsNotAppliedWhateverItsCode) {
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded, Code::kCancelled}) {
    const Error error =
        CsiError("d", Stage(), {.code = code, .message = "m", .never_sent = true}, {});
    EXPECT_FALSE(error.maybe_applied());
    EXPECT_TRUE(error.IsAbout(kCsiNeverSent));
  }
}

TEST(CsiOutcomeTest, WithoutAConnectionTheSameCallFollowsAtOnceAndAfterALongQueueLater) {
  const Error unconnected = CsiError("d", Stage(), {Code::kUnavailable, "m", true}, {});
  EXPECT_EQ(CsiRepeatOf(unconnected), CsiRepeat::kAtOnce);
  const Error broken = CsiError("d", Stage(), {Code::kUnavailable, "m", false}, {});
  EXPECT_EQ(CsiRepeatOf(broken), CsiRepeat::kLater);
  EXPECT_TRUE(broken.maybe_applied());
  const Error queued = CsiError("d", Stage(), {Code::kDeadlineExceeded, "m", true}, {});
  EXPECT_EQ(CsiRepeatOf(queued), CsiRepeat::kLater);
}

TEST(CsiOutcomeTest, ANumberThatIsNoCodeIsUnknown) {
  for (const int number : {-1, 0, 17, 4242}) EXPECT_EQ(CsiCode(number), Code::kUnknown);
  for (int number = 1; number <= kLastCode; ++number) {
    EXPECT_EQ(static_cast<int>(CsiCode(number)), number);
  }
}

TEST(CsiOutcomeTest, TheTextNamesDriverRpcCodeAndReason) {
  const Error error = CsiError("nfs.csi.k8s.io", Stage(), {Code::kInternal, " mount failed\n"}, {});
  EXPECT_EQ(error.message(), "nfs.csi.k8s.io: NodeStageVolume: Internal: mount failed");
  EXPECT_EQ(error.code(), Code::kInternal);
  const Error silent = CsiError("d", Stats(), {Code::kNotFound, ""}, {});
  EXPECT_EQ(silent.message(), "d: NodeGetVolumeStats: NotFound: the driver gave no reason");
}

TEST(CsiOutcomeTest, TheTextIsBoundedAndPrintableWhateverTheDriverSaid) {
  const Error error =
      CsiError("d", Stage(), {Code::kInternal, "\x1b[2J\xff\xfe" + std::string(100'000, 'x')}, {});
  EXPECT_LE(error.message().size(), 2200u);
  EXPECT_TRUE(IsUtf8(error.message()));
  EXPECT_NE(error.message().find("\\x1b[2J\\xff\\xfe"), std::string::npos);
}

TEST(CsiOutcomeTest, ASecretThatTheDriverRepeatsIsNotInTheText) {
  ::csi::v1::NodeStageVolumeRequest request;
  (*request.mutable_secrets())["password"] = "hunter2";
  const Error error = CsiError("d", Stage(), {Code::kInternal, "bad login with hunter2 as key"},
                               CsiSecrets(request));
  EXPECT_EQ(error.message(), "d: NodeStageVolume: Internal: bad login with ***stripped*** as key");
}

}  // namespace
}  // namespace volumed
