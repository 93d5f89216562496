// Properties of SizeLimits over random measurements of some volumes.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "base/manual_clock.h"
#include "volumehost/event_log.h"
#include "volumemanager/watch/size_limits.h"

namespace volumed {
namespace {

constexpr int64_t kLimits[] = {0, 1, 1000, 1024, int64_t{5} << 30};

class RandomUsage {
 public:
  explicit RandomUsage(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  int64_t Limit() { return kLimits[Below(std::size(kLimits))]; }
  // Mostly near a limit, where a comparison can be wrong by one.
  int64_t Used() { return Limit() + static_cast<int64_t>(Below(3)) - 1; }

 private:
  std::mt19937_64 random_;
};

VolumeSpec Scratch(std::optional<int64_t> limit) {
  EmptyDirVolumeSource source;
  if (limit) source.size_limit = Quantity::FromBytes(*limit);
  return VolumeSpec::FromVolume({"scratch", source});
}

TEST(SizeLimitsRandom, AMessageIsThereIfAndOnlyIfMoreIsUsedThanALimitAllows) {
  RandomUsage dice(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::optional<int64_t> limit =
        dice.Below(5) == 0 ? std::nullopt : std::optional(dice.Limit());
    Metrics metrics;
    if (dice.Below(5) != 0) metrics.used_bytes = dice.Used();
    const bool exceeds = limit && *limit > 0 && metrics.used_bytes && *metrics.used_bytes > *limit;
    ASSERT_EQ(!SizeLimitMessage(Scratch(limit), metrics).empty(), exceeds)
        << "limit " << limit.value_or(-1) << ", used " << metrics.used_bytes.value_or(-1);
  }
}

// What a model with a flag for each volume says.
TEST(SizeLimitsRandom, EachTimeThatALimitIsExceededAnewThePodLeavesOnce) {
  ManualClock clock;
  EventLog events(clock);
  std::map<PodUid, int> evicted;
  SizeLimits limits(events, clock, SizeLimitAction::kEvict,
                    [&](const PodUid& pod, const std::string&) { ++evicted[pod]; });
  struct Model {
    bool is_over = false;
    int64_t since_unix_ms = 0;
    int breaches = 0;
  };
  std::map<PodVolumeKey, Model> models;
  RandomUsage dice(2);
  for (int i = 0; i < 20'000; ++i) {
    clock.Advance(std::chrono::milliseconds(1 + dice.Below(5)));
    const PodVolumeKey key{PodUid("u" + std::to_string(dice.Below(5))), SpecName("scratch")};
    Model& model = models[key];
    if (dice.Below(10) == 0) {
      limits.Forget(key);
      model.is_over = false;
    } else {
      const int64_t limit = dice.Limit();
      Metrics metrics;
      metrics.used_bytes = dice.Used();
      limits.Measured(key, Scratch(limit), metrics);
      const bool is_over = limit > 0 && *metrics.used_bytes > limit;
      if (is_over && !model.is_over) {
        ++model.breaches;
        model.since_unix_ms = clock.WallUnixMillis();
      }
      model.is_over = is_over;
    }
    const SizeLimitBreach* breach = limits.Find(key);
    ASSERT_EQ(breach != nullptr, model.is_over) << i;
    const int64_t since = breach == nullptr ? model.since_unix_ms : breach->since_unix_ms;
    ASSERT_EQ(since, model.since_unix_ms) << i;
    ASSERT_EQ(evicted[key.pod], model.breaches) << i;
  }
}

}  // namespace
}  // namespace volumed
