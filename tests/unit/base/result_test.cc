#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <type_traits>

namespace volumed {
namespace {

static_assert(!std::is_default_constructible_v<Error>, "an Error needs an outcome");

TEST(CodeTest, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 1; code <= 16; ++code) {
    names.insert(CodeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names.count("InvalidCode"), 0u);
  EXPECT_EQ(CodeName(Code::kDeadlineExceeded), "DeadlineExceeded");
}

TEST(CodeTest, ANumberOutsideTheEnumStillHasAText) {
  EXPECT_EQ(CodeName(static_cast<Code>(99)), "InvalidCode");
}

TEST(CodeTest, ErrnosMapToTheirNaturalCodes) {
  EXPECT_EQ(CodeFromErrno(ENOENT), Code::kNotFound);
  EXPECT_EQ(CodeFromErrno(EEXIST), Code::kAlreadyExists);
  EXPECT_EQ(CodeFromErrno(EACCES), Code::kPermissionDenied);
  EXPECT_EQ(CodeFromErrno(EROFS), Code::kPermissionDenied);
  EXPECT_EQ(CodeFromErrno(EBUSY), Code::kFailedPrecondition);
  EXPECT_EQ(CodeFromErrno(ENOSPC), Code::kResourceExhausted);
  EXPECT_EQ(CodeFromErrno(ETIMEDOUT), Code::kDeadlineExceeded);
  EXPECT_EQ(CodeFromErrno(ENOSYS), Code::kUnimplemented);
  EXPECT_EQ(CodeFromErrno(EIO), Code::kDataLoss);
  EXPECT_EQ(CodeFromErrno(4242), Code::kUnknown);
}

TEST(ErrnoNameTest, KnownAndUnknownNumbers) {
  EXPECT_EQ(ErrnoName(ENOENT), "ENOENT");
  EXPECT_EQ(ErrnoName(ENOTEMPTY), "ENOTEMPTY");
  EXPECT_EQ(ErrnoName(4242), "errno 4242");
}

TEST(ErrorTest, FromErrnoNamesCallAndReason) {
  const Error error = Error::FromErrno(EBUSY, "unmount /a", Outcome::kNotApplied);
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_EQ(error.sys_errno(), EBUSY);
  EXPECT_FALSE(error.maybe_applied());
  EXPECT_EQ(error.message(), "unmount /a: Device or resource busy");
  EXPECT_EQ(error.ToString(),
            "FailedPrecondition (not applied, EBUSY): unmount /a: Device or resource busy");
}

TEST(ErrorTest, FromErrnoOfANumberWithoutText) {
  EXPECT_EQ(Error::FromErrno(4242, "x", Outcome::kNotApplied).message(), "x: errno 4242");
}

TEST(ErrorTest, ContextKeepsOutcomeCodeAndErrno) {
  const Error error = Error::FromErrno(EIO, "read", Outcome::kMaybeApplied).With("pod a");
  EXPECT_TRUE(error.maybe_applied());
  EXPECT_EQ(error.code(), Code::kDataLoss);
  EXPECT_EQ(error.sys_errno(), EIO);
  EXPECT_EQ(error.message(), "pod a: read: Input/output error");
}

TEST(ErrorTest, AsMaybeAppliedChangesTheOutcomeOnly) {
  const Error before = Error::NotApplied(Code::kAborted, "step 2");
  const Error after = before.AsMaybeApplied();
  EXPECT_EQ(after, Error::MaybeApplied(Code::kAborted, "step 2"));
  EXPECT_NE(after, before);
  EXPECT_EQ(after.ToString(), "Aborted (maybe applied): step 2");
}

TEST(ErrorTest, PartsRebuildTheSameError) {
  const Error error = Error::FromErrno(ENOENT, "open", Outcome::kMaybeApplied);
  EXPECT_EQ(Error::FromParts(error.code(), error.outcome(), error.sys_errno(), error.message()),
            error);
}

Result<int> Half(int number) {
  if (number % 2 != 0) return Error::NotApplied(Code::kInvalidArgument, "odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int number) {
  RETURN_IF_ERROR(Quarter(number));
  return OkStatus();
}

TEST(ResultTest, MacrosPassValuesAndErrorsOn) {
  ASSERT_TRUE(Quarter(8).ok());
  EXPECT_EQ(*Quarter(8), 2);
  ASSERT_FALSE(Quarter(6).ok());
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_EQ(CheckQuarter(5).error().code(), Code::kInvalidArgument);
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultTest, WithPutsContextOnErrorsOnly) {
  EXPECT_EQ(*Half(4).With("ignored"), 2);
  EXPECT_EQ(Half(3).With("halving").error().message(), "halving: odd");
  EXPECT_EQ(Status(Error::NotApplied(Code::kAborted, "a")).With("b").error().message(), "b: a");
  EXPECT_TRUE(OkStatus().With("b").ok());
}

TEST(ErrorTest, WhatItIsAboutStaysWithContextAndOutcome) {
  const Error error = Error::NotApplied(Code::kNotFound, "secret \"a\" is missing")
                          .About("secret ns/a")
                          .About("secret ns/a")
                          .With("mount")
                          .AsMaybeApplied();
  EXPECT_EQ(error.about(), std::vector<std::string>{"secret ns/a"});
  EXPECT_TRUE(error.IsAbout("secret ns/a"));
  EXPECT_FALSE(error.IsAbout("secret ns/aa"));
  EXPECT_EQ(error.message(), "mount: secret \"a\" is missing");
}

}  // namespace
}  // namespace volumed
