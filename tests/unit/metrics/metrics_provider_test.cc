#include "metrics/metrics_provider.h"

#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "metrics/metrics_block.h"
#include "metrics/metrics_cached.h"
#include "metrics/metrics_du.h"
#include "metrics/metrics_nil.h"
#include "metrics/metrics_statfs.h"
#include "metrics/metrics_timed.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MetricsErrorTest, TextsAndKinds) {
  const struct {
    Error error;
    std::string message;
    MetricsErrorCode code;
    bool not_supported;
  } cases[] = {
      {NewNotSupportedError(), "metrics are not supported for MetricsNil Volumes",
       MetricsErrorCode::kNotSupported, true},
      {NewNotSupportedErrorWithDriverName("csi.example.com"),
       "metrics are not supported for csi.example.com volumes", MetricsErrorCode::kNotSupported,
       true},
      {NewNotImplementedError("no stats"), "metrics support is not implemented: no stats",
       MetricsErrorCode::kNotSupported, true},
      {NewNoPathDefinedError(), "no path defined for disk usage metrics.",
       MetricsErrorCode::kNoPathDefined, false},
      {NewFsInfoFailedError(Error::MaybeApplied(Code::kDeadlineExceeded, "too late")),
       "failed to get FsInfo due to error too late", MetricsErrorCode::kFsInfoFailed, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.error.message(), c.message);
    EXPECT_EQ(MetricsErrorCodeOf(c.error), c.code) << c.message;
    EXPECT_EQ(IsNotSupported(c.error), c.not_supported) << c.message;
    EXPECT_FALSE(c.error.maybe_applied());
    EXPECT_EQ(MetricsErrorCodeOf(c.error.With("volume x")), c.code) << "wrapped";
    EXPECT_EQ(IsNotSupported(c.error.With("volume x")), c.not_supported) << "wrapped";
    const Error quoted = Error::NotApplied(c.error.code(), c.message);
    EXPECT_EQ(MetricsErrorCodeOf(quoted), std::nullopt) << "the text alone means nothing";
  }
  EXPECT_EQ(NewFsInfoFailedError(Error::MaybeApplied(Code::kDeadlineExceeded, "")).code(),
            Code::kDeadlineExceeded);
  EXPECT_FALSE(IsNotSupported(Error::NotApplied(Code::kUnimplemented, "something else")));
  for (const Error& other :
       {Error::NotApplied(Code::kInvalidArgument, "something else"),
        Error::NotApplied(Code::kUnknown, "no path defined for disk usage metrics."),
        Error::NotApplied(Code::kUnknown, "metrics are not supported for MetricsNil Volumes")}) {
    EXPECT_EQ(MetricsErrorCodeOf(other), std::nullopt) << other.ToString();
  }
}

// Answers what it is told, and remembers what it was asked.
class ScriptedKernel final : public Kernel {
 public:
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    calls.push_back(std::string(NameOf(request)) + " " + PathOf(request) + " for " + options.key);
    if (std::holds_alternative<StatFs>(request) && fs_error) return *fs_error;
    if (std::holds_alternative<StatFs>(request)) return AnyAnswer(fs);
    if (std::holds_alternative<Usage>(request) && usage_error) return *usage_error;
    if (std::holds_alternative<Usage>(request)) return AnyAnswer(usage);
    if (std::holds_alternative<Stat>(request) && fs_error) return *fs_error;
    if (std::holds_alternative<Stat>(request)) return AnyAnswer(file);
    return Error::NotApplied(Code::kInternal, "unexpected request");
  }

  FsInfo fs{0, 1000, 600, 350, 100, 90, 10};
  UsageInfo usage{42, 7};
  FileInfo file;
  std::optional<Error> fs_error;
  std::optional<Error> usage_error;
  std::vector<std::string> calls;

 private:
  static std::string_view NameOf(const AnyRequest& request) {
    return std::visit([](const auto& r) { return std::string_view(r.kName); }, request);
  }
  static std::string PathOf(const AnyRequest& request) {
    if (const auto* r = std::get_if<StatFs>(&request)) return r->path.Display();
    if (const auto* r = std::get_if<Usage>(&request)) return r->path.Display();
    return "";
  }
};

class MetricsProvidersTest : public ::testing::Test {
 protected:
  MetricsProvidersTest() { options_.key = "pod/volume"; }

  ScriptedKernel kernel_;
  ManualClock clock_;
  CallOptions options_;
  const SafePath path_{"/root", "volumes/v"};
};

TEST_F(MetricsProvidersTest, NilIsNotSupported) {
  const auto metrics = MetricsNil().GetMetrics(options_);
  ASSERT_FALSE(metrics.ok());
  EXPECT_TRUE(IsNotSupported(metrics.error()));
}

TEST_F(MetricsProvidersTest, StatFsGivesTheFilesystemsFigures) {
  const auto metrics = MetricsStatFs(kernel_, clock_, path_).GetMetrics(options_);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->capacity_bytes, 1000);
  EXPECT_EQ(metrics->available_bytes, 600);
  EXPECT_EQ(metrics->used_bytes, 350);
  EXPECT_EQ(metrics->inodes, 100);
  EXPECT_EQ(metrics->inodes_free, 90);
  EXPECT_EQ(metrics->inodes_used, 10);
  EXPECT_EQ(metrics->time_unix_ms, clock_.WallUnixMillis());
  EXPECT_EQ(metrics->abnormal, std::nullopt);
  EXPECT_THAT(kernel_.calls, ElementsAre("StatFs /root/volumes/v for pod/volume"));
}

TEST_F(MetricsProvidersTest, DuGivesTheWalksUseAndTheFilesystemsRest) {
  const auto metrics = MetricsDu(kernel_, clock_, path_).GetMetrics(options_);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->used_bytes, 42);
  EXPECT_EQ(metrics->inodes_used, 7);
  EXPECT_EQ(metrics->capacity_bytes, 1000);
  EXPECT_EQ(metrics->available_bytes, 600);
  EXPECT_EQ(metrics->inodes, 100);
  EXPECT_EQ(metrics->inodes_free, 90);
  EXPECT_EQ(metrics->time_unix_ms, clock_.WallUnixMillis());
  EXPECT_THAT(kernel_.calls, ElementsAre("Usage /root/volumes/v for pod/volume",
                                         "StatFs /root/volumes/v for pod/volume"));
}

TEST_F(MetricsProvidersTest, WithoutAPathNothingIsAsked) {
  EXPECT_EQ(MetricsStatFs(kernel_, clock_, {}).GetMetrics(options_).error(),
            NewNoPathDefinedError());
  EXPECT_EQ(MetricsDu(kernel_, clock_, {}).GetMetrics(options_).error(), NewNoPathDefinedError());
  EXPECT_THAT(kernel_.calls, IsEmpty());
}

TEST_F(MetricsProvidersTest, FailuresOfTheKernelAreNamed) {
  kernel_.fs_error = Error::FromErrno(ESTALE, "statfs", Outcome::kNotApplied);
  for (const auto& metrics : {MetricsStatFs(kernel_, clock_, path_).GetMetrics(options_),
                              MetricsDu(kernel_, clock_, path_).GetMetrics(options_)}) {
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(MetricsErrorCodeOf(metrics.error()), MetricsErrorCode::kFsInfoFailed);
    EXPECT_EQ(metrics.error().sys_errno(), ESTALE);
  }
  kernel_.usage_error = Error::NotApplied(Code::kNotFound, "gone");
  EXPECT_EQ(MetricsDu(kernel_, clock_, path_).GetMetrics(options_).error(), *kernel_.usage_error);
}

TEST_F(MetricsProvidersTest, BlockGivesTheDevicesCapacityAlone) {
  kernel_.file.type = FileType::kBlockDevice;
  kernel_.file.size_bytes = 4096;
  const auto metrics = MetricsBlock(kernel_, clock_, path_).GetMetrics(options_);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->capacity_bytes, 4096);
  EXPECT_EQ(metrics->used_bytes, std::nullopt);
  EXPECT_EQ(metrics->available_bytes, std::nullopt);
  EXPECT_EQ(metrics->inodes, std::nullopt);
  EXPECT_EQ(metrics->time_unix_ms, clock_.WallUnixMillis());
}

TEST_F(MetricsProvidersTest, BlockSaysWhatIsWrong) {
  EXPECT_EQ(MetricsBlock(kernel_, clock_, {}).GetMetrics(options_).error(),
            NewNoPathDefinedError());
  EXPECT_EQ(MetricsBlock(kernel_, clock_, path_).GetMetrics(options_).error().message(),
            "failed to get FsInfo due to error /root/volumes/v is not a block device");
  kernel_.file.type = FileType::kBlockDevice;
  EXPECT_EQ(MetricsBlock(kernel_, clock_, path_).GetMetrics(options_).error().message(),
            "failed to get FsInfo due to error the size of /root/volumes/v is unknown");
  kernel_.fs_error = Error::FromErrno(EIO, "stat", Outcome::kNotApplied);
  EXPECT_EQ(MetricsErrorCodeOf(MetricsBlock(kernel_, clock_, path_).GetMetrics(options_).error()),
            MetricsErrorCode::kFsInfoFailed);
}

TEST_F(MetricsProvidersTest, CachedKeepsTheFirstSuccessAndNoError) {
  kernel_.fs_error = Error::NotApplied(Code::kUnavailable, "not yet");
  MetricsCached cached(std::make_unique<MetricsStatFs>(kernel_, clock_, path_));
  EXPECT_FALSE(cached.GetMetrics(options_).ok());
  kernel_.fs_error.reset();
  EXPECT_EQ(cached.GetMetrics(options_)->used_bytes, 350);
  kernel_.fs.used_bytes = 999;
  clock_.Advance(std::chrono::hours(1));
  const auto again = cached.GetMetrics(options_);
  EXPECT_EQ(again->used_bytes, 350);
  EXPECT_EQ(again->time_unix_ms, ManualClock::kStartUnixMillis);
  EXPECT_EQ(kernel_.calls.size(), 2u);
}

TEST_F(MetricsProvidersTest, CachedHasNothingToAskOnceItHasAnAnswer) {
  MetricsCached cached(std::make_unique<MetricsDu>(kernel_, clock_, path_));
  const auto plan = cached.PlanMetrics();
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->requests.size(), 2u);
  ASSERT_TRUE(plan->read({AnyAnswer(kernel_.usage), AnyAnswer(kernel_.fs)}, Duration::zero()).ok());
  EXPECT_FALSE(cached.PlanMetrics().has_value());
  EXPECT_EQ(cached.GetMetrics(options_)->used_bytes, 42);
  EXPECT_THAT(kernel_.calls, IsEmpty());
}

TEST_F(MetricsProvidersTest, TimedCountsAnswersAndFailures) {
  class Slow final : public MetricsProvider {
   public:
    Slow(ManualClock& clock, bool ok) : clock_(clock), ok_(ok) {}
    Result<Metrics> GetMetrics(const CallOptions&) override {
      clock_.Advance(std::chrono::milliseconds(300));
      if (ok_) return Metrics{};
      return NewNotSupportedError();
    }

   private:
    ManualClock& clock_;
    const bool ok_;
  };
  ExportedFamilies families;
  for (const bool ok : {true, false}) {
    MetricsTimed timed(std::make_unique<Slow>(clock_, ok), "statfs", clock_, families);
    EXPECT_EQ(timed.GetMetrics(options_).ok(), ok);
  }
  std::string text;
  families.AppendTo(text);
  const std::string name = "kubelet_volume_metric_collection_duration_seconds";
  EXPECT_THAT(text, HasSubstr(name + "_count{metric_source=\"statfs\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{metric_source=\"statfs\",le=\"0.25\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{metric_source=\"statfs\",le=\"0.5\"} 2\n"));
}

}  // namespace
}  // namespace volumed
