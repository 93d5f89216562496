#include "csi/rpc/csi_trace.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csi/rpc/csi_methods.h"

namespace volumed {
namespace {

size_t BytesOf(const CsiCallReport& report) {
  return sizeof(CsiCallReport) + report.driver.size() + report.key.size() + report.request.size() +
         report.answer.size() + report.not_true.size() +
         (report.error ? report.error->message().size() : 0);
}

}  // namespace

CsiTrace::CsiTrace(const Clock& clock, CsiTraceLimits limits) : clock_(clock), limits_(limits) {}

void CsiTrace::CallSent(const CsiCallReport& report) {
  const TimePoint now = clock_.Now();
  MutexLock lock(mu_);
  open_.insert_or_assign(&report, Open{next_number_++, now, report});
}

void CsiTrace::CallEnded(const CsiCallReport& report) {
  const TimePoint now = clock_.Now();
  const bool is_quiet = report.method->kind == CsiRpcKind::kReadOnly && !report.error;
  MutexLock lock(mu_);
  open_.erase(&report);
  if (!drivers_.contains(report.driver)) MakeRoom();
  Driver& driver = drivers_[report.driver];
  driver.last_call = now;
  (is_quiet ? driver.quiet : driver.told).Add({next_number_++, now, BytesOf(report), report});
  Trim(driver, now);
}

void CsiTrace::Lied(const std::string& driver, const std::string& rpc, const std::string& key,
                    const std::string& why) {
  const std::string about = CsiKeyText(key);
  MutexLock lock(mu_);
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return;
  Entry* last = nullptr;
  Ring* ring_of_last = nullptr;
  for (Ring* ring : {&found->second.told, &found->second.quiet}) {
    for (Entry& entry : ring->entries) {
      const bool is_it = entry.report.method->name == rpc && entry.report.key == about;
      if (!is_it || (last != nullptr && entry.number < last->number)) continue;
      last = &entry;
      ring_of_last = ring;
    }
  }
  if (last == nullptr) return;
  last->report.not_true = why;
  const size_t before = std::exchange(last->bytes, BytesOf(last->report));
  ring_of_last->bytes += last->bytes - before;
  Trim(found->second, clock_.Now());
}

std::vector<CsiCallReport> CsiTrace::Of(const std::string& driver) const {
  std::vector<CsiCallReport> reports;
  MutexLock lock(mu_);
  AddEnded(driver, reports);
  AddOpen(driver, reports);
  return reports;
}

void CsiTrace::AddEnded(const std::string& driver, std::vector<CsiCallReport>& out) const {
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return;
  Trim(found->second, clock_.Now());
  const std::deque<Entry>& told = found->second.told.entries;
  const std::deque<Entry>& quiet = found->second.quiet.entries;
  std::vector<const Entry*> entries;
  for (const std::deque<Entry>* ring : {&told, &quiet}) {
    for (const Entry& entry : *ring) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->number < b->number; });
  for (const Entry* entry : entries) out.push_back(entry->report);
}

void CsiTrace::AddOpen(const std::string& driver, std::vector<CsiCallReport>& out) const {
  std::vector<const Open*> calls;
  for (const auto& [told_of, call] : open_) {
    if (call.report.driver == driver) calls.push_back(&call);
  }
  std::sort(calls.begin(), calls.end(),
            [](const Open* a, const Open* b) { return a->number < b->number; });
  for (const Open* call : calls) {
    out.push_back(call->report);
    out.back().under_way = true;
    out.back().duration = clock_.Now() - call->sent;
  }
}

std::vector<std::string> CsiTrace::Drivers() const {
  std::vector<std::string> names;
  MutexLock lock(mu_);
  for (const auto& [name, driver] : drivers_) names.push_back(name);
  return names;
}

void CsiTrace::Forget(const std::string& driver) {
  MutexLock lock(mu_);
  drivers_.erase(driver);
}

void CsiTrace::Ring::Add(Entry entry) {
  bytes += entry.bytes;
  entries.push_back(std::move(entry));
}

void CsiTrace::Ring::DropOldest() {
  bytes -= entries.front().bytes;
  entries.pop_front();
}

void CsiTrace::Trim(Driver& driver, TimePoint now) const {
  const auto is_old = [&](const Ring& ring) {
    return !ring.entries.empty() && now - ring.entries.front().ended > limits_.age;
  };
  while (driver.told.entries.size() > limits_.calls || is_old(driver.told)) {
    driver.told.DropOldest();
  }
  while (driver.quiet.entries.size() > limits_.quiet_calls || is_old(driver.quiet)) {
    driver.quiet.DropOldest();
  }
  while (driver.told.bytes + driver.quiet.bytes > limits_.bytes) {
    (driver.told.bytes > driver.quiet.bytes ? driver.told : driver.quiet).DropOldest();
  }
}

void CsiTrace::MakeRoom() {
  while (!drivers_.empty() && drivers_.size() >= limits_.drivers) {
    drivers_.erase(std::min_element(
        drivers_.begin(), drivers_.end(),
        [](const auto& a, const auto& b) { return a.second.last_call < b.second.last_call; }));
  }
}

}  // namespace volumed
