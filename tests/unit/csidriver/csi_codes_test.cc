#include "csidriver/csi_codes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/printable_text.h"

namespace volumed {
namespace {

constexpr Outcome kNot = Outcome::kNotApplied;
constexpr Outcome kMaybe = Outcome::kMaybeApplied;

struct CodeRow {
  Code code;
  Code not_applied;
  Code maybe_applied;
};

// All codes, as numbers of gRPC.
const std::vector<CodeRow>& CodeRows() {
  static const std::vector<CodeRow> kRows = {
      {Code::kCancelled, Code::kUnavailable, Code::kUnavailable},
      {Code::kUnknown, Code::kInternal, Code::kUnavailable},
      {Code::kInvalidArgument, Code::kInvalidArgument, Code::kUnavailable},
      {Code::kDeadlineExceeded, Code::kDeadlineExceeded, Code::kDeadlineExceeded},
      {Code::kNotFound, Code::kNotFound, Code::kUnavailable},
      {Code::kAlreadyExists, Code::kAlreadyExists, Code::kUnavailable},
      {Code::kPermissionDenied, Code::kFailedPrecondition, Code::kUnavailable},
      {Code::kResourceExhausted, Code::kResourceExhausted, Code::kResourceExhausted},
      {Code::kFailedPrecondition, Code::kFailedPrecondition, Code::kUnavailable},
      {Code::kAborted, Code::kAborted, Code::kAborted},
      {Code::kOutOfRange, Code::kOutOfRange, Code::kUnavailable},
      {Code::kUnimplemented, Code::kFailedPrecondition, Code::kUnavailable},
      {Code::kInternal, Code::kInternal, Code::kUnavailable},
      {Code::kUnavailable, Code::kUnavailable, Code::kUnavailable},
      {Code::kDataLoss, Code::kDataLoss, Code::kUnavailable},
      {Code::kUnauthenticated, Code::kInternal, Code::kUnavailable},
  };
  return kRows;
}

TEST(CsiCodesTest, EachCodeAndOutcomeHasTheCodeThatACallerReadsRight) {
  ASSERT_EQ(CodeRows().size(), 16U) << "gRPC has so many that are not OK";
  for (size_t i = 0; i < CodeRows().size(); ++i) {
    const CodeRow& row = CodeRows()[i];
    EXPECT_EQ(static_cast<size_t>(row.code), i + 1);
    EXPECT_EQ(CsiCodeOf(row.code, kNot), row.not_applied) << CodeName(row.code);
    EXPECT_EQ(CsiCodeOf(row.code, kMaybe), row.maybe_applied) << CodeName(row.code);
  }
  EXPECT_EQ(CsiCodeOf(static_cast<Code>(99), kNot), Code::kInternal);
}

// Source: kubernetes pkg/volume/csi/csi_client.go@v1.36 (isFinalError).
bool IsFinalToAKubelet(Code code) {
  return code != Code::kCancelled && code != Code::kDeadlineExceeded &&
         code != Code::kUnavailable && code != Code::kResourceExhausted && code != Code::kAborted;
}

TEST(CsiCodesTest, NoCallerTakesAnErrorForFinalThatMayBeApplied) {
  for (const CodeRow& row : CodeRows()) {
    EXPECT_FALSE(IsFinalToAKubelet(CsiCodeOf(row.code, kMaybe))) << CodeName(row.code);
  }
}

TEST(CsiCodesTest, WhatAKernelLacksIsNoRpcThatIsMissing) {
  for (const CodeRow& row : CodeRows()) {
    for (const Outcome outcome : {kNot, kMaybe}) {
      EXPECT_NE(CsiCodeOf(row.code, outcome), Code::kUnimplemented) << CodeName(row.code);
    }
  }
  EXPECT_EQ(CsiNotServed("/csi.v1.Node/NodeStageVolume", "why").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST(CsiCodesTest, WhatIsImmutableWasAFaultOfTheDriver) {
  const Error refused = Error::FromErrno(EPERM, "make file /t/v", kNot);
  EXPECT_EQ(CsiStatusOf(refused).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(CsiStatusOf(refused).error_message().find("`chattr -i -a`"), std::string::npos);
  const Error said = Error::FromErrno(EPERM, "remove /t/v: `chattr -R -i -a /t`", kNot);
  EXPECT_EQ(CsiStatusOf(said).error_message(), said.message()) << "it says what to do itself";
}

TEST(CsiCodesTest, AStatusSaysWhatWasWrongAndWhatToDo) {
  EXPECT_TRUE(CsiStatusOf(OkStatus()).ok());
  const grpc::Status refused =
      CsiStatusOf(Error::NotApplied(Code::kNotFound, "no volume \"v\"").With("stage"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(refused.error_message(), "stage: no volume \"v\"");
  EXPECT_EQ(refused.error_details(), "");
  const grpc::Status maybe = CsiStatusOf(Error::MaybeApplied(Code::kInternal, "mount"));
  EXPECT_EQ(maybe.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(maybe.error_message(),
            "mount (it may have had its effect: repeat the call, or its inverse)");
  EXPECT_EQ(CsiStatusOf(Error::NotApplied(Code::kAborted, "")).error_message(), "Aborted")
      << "the specification requires a message";
}

TEST(CsiCodesTest, AMessageIsPrintableAndBounded) {
  for (const size_t size :
       {size_t{1}, kMostCsiMessage - 1, kMostCsiMessage, kMostCsiMessage + 1, size_t{1} << 20}) {
    for (const std::string& character :
         {std::string("a"), std::string("\x01"), std::string("\xff"), std::string("\u00e9")}) {
      std::string text;
      while (text.size() < size) text += character;
      for (const Error& error :
           {Error::NotApplied(Code::kInternal, text), Error::MaybeApplied(Code::kInternal, text)}) {
        const std::string message = CsiStatusOf(error).error_message();
        EXPECT_LE(message.size(), kMostCsiMessage) << size << " of '" << character << "'";
        EXPECT_TRUE(IsText(message)) << size << " of '" << character << "'";
        if (size > kMostCsiMessage) {
          EXPECT_NE(message.find("..."), std::string::npos);
        }
      }
    }
  }
}

}  // namespace
}  // namespace volumed
