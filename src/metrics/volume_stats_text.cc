#include "metrics/volume_stats_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/printable_text.h"
#include "metrics/family_table.h"

namespace volumed {
namespace {

constexpr size_t kLongestHeader = 300;  // bytes; no more than a hint for one allocation
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The length of the character at the start of `text`, 0 if it is not UTF-8.
size_t LengthOfCharacter(std::string_view text) {
  return static_cast<unsigned char>(text[0]) < 0x80 ? 1 : Utf8Length(text);
}

void AppendLabel(std::string& out, std::string_view name, std::string_view value) {
  out += out.empty() ? '{' : ',';
  out += name;
  out += "=\"";
  AppendLabelValue(out, value);
  out += '"';
}

void AppendHeader(std::string& out, const FamilySpec& spec) {
  out.append("# HELP ").append(spec.name).append(" ").append(spec.help);
  out.append("\n# TYPE ").append(spec.name).append(" gauge\n");
}

template <typename Number>
void AppendLine(std::string& out, std::string_view name, std::string_view labels, Number value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out += name;
  out += labels;
  out.append(digits.data(), end);
  out += '\n';
}

// Milliseconds as seconds, exactly.
void AppendAge(std::string& out, std::string_view name, std::string_view labels, int64_t age_ms) {
  AppendLine(out, name, labels, age_ms / 1000);
  const int64_t rest = age_ms % 1000;
  if (rest == 0) return;
  out.back() = '.';
  for (int64_t digit = 100; digit > 0; digit /= 10) {
    out += static_cast<char>('0' + rest / digit % 10);
  }
  out += '\n';
}

using Field = std::optional<int64_t> (*)(const Metrics&);
struct Column {
  Family claim;       // for volumes with a claim
  Family pod_volume;  // for those without
  Field field;
};
constexpr Column kColumns[] = {
    {Family::kVolumeStatsCapacityBytes, Family::kPodVolumeStatsCapacityBytes,
     [](const Metrics& m) { return m.capacity_bytes; }},
    {Family::kVolumeStatsAvailableBytes, Family::kPodVolumeStatsAvailableBytes,
     [](const Metrics& m) { return m.available_bytes; }},
    {Family::kVolumeStatsUsedBytes, Family::kPodVolumeStatsUsedBytes,
     [](const Metrics& m) { return m.used_bytes; }},
    {Family::kVolumeStatsInodes, Family::kPodVolumeStatsInodes,
     [](const Metrics& m) { return m.inodes; }},
    {Family::kVolumeStatsInodesFree, Family::kPodVolumeStatsInodesFree,
     [](const Metrics& m) { return m.inodes_free; }},
    {Family::kVolumeStatsInodesUsed, Family::kPodVolumeStatsInodesUsed,
     [](const Metrics& m) { return m.inodes_used; }},
    {Family::kVolumeStatsHealthAbnormal, Family::kPodVolumeStatsHealthAbnormal,
     [](const Metrics& m) {
       return m.abnormal ? std::optional<int64_t>(*m.abnormal ? 1 : 0) : std::nullopt;
     }},
};

}  // namespace

void AppendLabelValue(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const size_t length = LengthOfCharacter(value);
    if (length == 0) {
      out += kReplacement;
      value.remove_prefix(1);
      continue;
    }
    if (value[0] == '\\' || value[0] == '"') out += '\\';
    if (value[0] == '\n') {
      out += "\\n";
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(length);
  }
}

void VolumeStatsText::Link(Series& series, const std::string& labels, const Volume& volume) {
  series[labels].push_back(&volume);
}

void VolumeStatsText::Unlink(Series& series, const std::string& labels, const Volume& volume) {
  const auto found = series.find(labels);
  std::vector<const Volume*>& volumes = found->second;
  volumes.erase(std::find(volumes.begin(), volumes.end(), &volume));
  if (volumes.empty()) series.erase(found);
}

void VolumeStatsText::Set(const VolumeStatsId& id, const VolumeStatsLabels& labels,
                          const Metrics& metrics) {
  MutexLock lock(news_mu_);
  News& news = news_.try_emplace(id, News{news_.size(), false, std::nullopt}).first->second;
  if (news.set) {
    news.set->second = metrics;
  } else {
    news.set.emplace(labels, metrics);
  }
}

void VolumeStatsText::Remove(const VolumeStatsId& id) {
  MutexLock lock(news_mu_);
  News& news = news_.try_emplace(id, News{news_.size(), true, std::nullopt}).first->second;
  news.removed = true;
  news.set.reset();
}

void VolumeStatsText::TakeNews() const {
  std::map<VolumeStatsId, News> all;
  {
    MutexLock lock(news_mu_);
    all.swap(news_);
  }
  std::vector<const std::pair<const VolumeStatsId, News>*> in_order(all.size());
  for (const auto& one : all) in_order[one.second.number] = &one;
  for (const auto* one : in_order) {
    const News& news = one->second;
    if (news.removed) RemoveNow(one->first);
    if (news.set) SetNow(one->first, news.set->first, news.set->second);
  }
}

void VolumeStatsText::SetNow(const VolumeStatsId& id, const VolumeStatsLabels& labels,
                             const Metrics& metrics) const {
  const auto [entry, added] = volumes_.try_emplace(id);
  Volume& volume = entry->second;
  volume.metrics = metrics;
  if (!added) return;
  AppendLabel(volume.pod_labels, "namespace", labels.pod_namespace);
  AppendLabel(volume.pod_labels, "pod", labels.pod_name);
  AppendLabel(volume.pod_labels, "volume", id.volume);
  AppendLabel(volume.pod_labels, "plugin", labels.plugin);
  volume.pod_labels += "} ";
  Link(pod_volumes_, volume.pod_labels, volume);
  if (!labels.persistent_volume_claim) return;
  AppendLabel(volume.claim_labels, "namespace", labels.pod_namespace);
  AppendLabel(volume.claim_labels, "persistentvolumeclaim", *labels.persistent_volume_claim);
  volume.claim_labels += "} ";
  Link(claims_, volume.claim_labels, volume);
}

void VolumeStatsText::RemoveNow(const VolumeStatsId& id) const {
  const auto found = volumes_.find(id);
  if (found == volumes_.end()) return;
  const Volume& volume = found->second;
  Unlink(pod_volumes_, volume.pod_labels, volume);
  if (!volume.claim_labels.empty()) Unlink(claims_, volume.claim_labels, volume);
  volumes_.erase(found);
}

size_t VolumeStatsText::size() const {
  MutexLock lock(mu_);
  TakeNews();
  return volumes_.size();
}

// One pass over the volumes, a text per family: with many volumes, a pass per family would fetch
// each of them from memory once for every family, which costs far more than the copy at the end.
void VolumeStatsText::AppendTo(std::string& out, int64_t now_unix_ms) const {
  MutexLock lock(mu_);
  TakeNews();
  for (const auto& [labels, volumes] : claims_) {
    for (const Column& column : kColumns) {
      AppendFigure(column.claim, labels, column.field(volumes.front()->metrics));
    }
  }
  for (const auto& [labels, volumes] : pod_volumes_) {
    const Volume& volume = *volumes.front();
    const int64_t age_ms = now_unix_ms - volume.metrics.time_unix_ms;
    AppendAge(TextOf(Family::kVolumeStatsAge), SpecOf(Family::kVolumeStatsAge).name, labels,
              std::max<int64_t>(0, age_ms));
    if (!volume.claim_labels.empty()) continue;
    for (const Column& column : kColumns) {
      AppendFigure(column.pod_volume, labels, column.field(volume.metrics));
    }
  }
  size_t size = out.size();
  for (const std::string& text : family_texts_) size += text.size() + kLongestHeader;
  out.reserve(size);
  for (size_t i = 0; i < family_texts_.size(); ++i) {
    if (family_texts_[i].empty()) continue;
    AppendHeader(out, SpecOf(static_cast<Family>(kFirstFamily + i)));
    out += family_texts_[i];
    family_texts_[i] = std::string();  // millions of bytes that nobody needs until the next scrape
  }
}

std::string& VolumeStatsText::TextOf(Family family) const {
  return family_texts_[static_cast<size_t>(family) - kFirstFamily];
}

void VolumeStatsText::AppendFigure(Family family, std::string_view labels,
                                   std::optional<int64_t> value) const {
  if (value) AppendLine(TextOf(family), SpecOf(family).name, labels, *value);
}

}  // namespace volumed
