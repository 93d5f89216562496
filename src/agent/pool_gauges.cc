#include "agent/pool_gauges.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "metrics/family_table.h"
#include "pool/pool_id.h"

namespace volumed {
namespace {

constexpr double kMillisInSecond = 1000;
// Several scrapers look at a pool no more often than one does.
constexpr Duration kBetweenLooks = std::chrono::seconds(10);

using PoolSeries = std::map<ExportedFamilies::LabelValues, double>;

}  // namespace

int CountOfPool(const Pool& pool, const std::vector<std::string>& ids) {
  const std::string tag = pool.tag();
  return static_cast<int>(std::count_if(ids.begin(), ids.end(), [&tag](const std::string& id) {
    const std::optional<PoolId> parsed = ParsePoolId(id);
    return parsed && parsed->pool_tag == tag;
  }));
}

void PoolGauges::Collect() {
  Tell();
  const TimePoint now = parts_.scheduler.clock().Now();
  for (const std::unique_ptr<Pool>& pool : parts_.volumes.pools()) {
    const auto last = looks_.find(pool.get());
    const bool is_due =
        last == looks_.end() || (!last->second.runs && now - last->second.began >= kBetweenLooks);
    if (is_due) LookAt(*pool);
  }
}

// What is found of its room is the same as of whoever else asks: PoolVolumes keeps that.
void PoolGauges::LookAt(const Pool& pool) {
  Look& look = looks_[&pool];
  look.runs = true;
  look.began = parts_.scheduler.clock().Now();
  parts_.scheduler.RunBlocking([this, &pool, watch = alive_.watch()] {
    const int64_t volumes = parts_.volumes.CountOf(pool.name());
    const int64_t snapshots = CountOfPool(pool, parts_.snapshots());
    (void)parts_.volumes.Glance(pool.name());
    parts_.scheduler.Post([this, &pool, watch, volumes, snapshots] {
      if (!watch.alive()) return;
      Look& ended = looks_.at(&pool);
      ended.runs = false;
      ended.has_counts = true;
      ended.volumes = volumes;
      ended.snapshots = snapshots;
    });
  });
}

void PoolGauges::Tell() {
  std::map<Family, PoolSeries> told;
  for (const std::unique_ptr<Pool>& pool : parts_.volumes.pools()) {
    const ExportedFamilies::LabelValues labels = {pool->name()};
    const PoolSeen seen = parts_.volumes.Seen(pool->name());
    const bool is_up = pool->state().ok() && !seen.failing_since_unix_ms;
    told[Family::kPoolUp][labels] = is_up ? 1 : 0;
    const auto look = looks_.find(pool.get());
    if (look != looks_.end() && look->second.has_counts) {
      told[Family::kPoolVolumes][labels] = static_cast<double>(look->second.volumes);
      told[Family::kPoolSnapshots][labels] = static_cast<double>(look->second.snapshots);
    }
    if (!seen.account) continue;
    const PoolAccount& account = *seen.account;
    told[Family::kPoolCapacityBytes][labels] = static_cast<double>(account.capacity_bytes);
    told[Family::kPoolPromisedBytes][labels] = static_cast<double>(account.promised_bytes);
    told[Family::kPoolFreeBytes][labels] = static_cast<double>(account.free_bytes);
    told[Family::kPoolAvailableBytes][labels] = static_cast<double>(account.available_bytes);
    told[Family::kPoolIsShort][labels] = account.is_short ? 1 : 0;
    told[Family::kPoolMeasured][labels] =
        static_cast<double>(seen.measured_unix_ms) / kMillisInSecond;
  }
  for (const Family family :
       {Family::kPoolUp, Family::kPoolCapacityBytes, Family::kPoolPromisedBytes,
        Family::kPoolFreeBytes, Family::kPoolAvailableBytes, Family::kPoolIsShort,
        Family::kPoolVolumes, Family::kPoolSnapshots, Family::kPoolMeasured}) {
    parts_.families.Replace(family, told[family]);
  }
}

}  // namespace volumed
