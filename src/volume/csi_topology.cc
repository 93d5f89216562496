#include "volume/csi_topology.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace volumed {
namespace {

constexpr std::string_view kZoneDelimiter = "__";

struct ZoneLabels {
  std::string_view zone = kZoneLabel;
  std::string_view region = kRegionLabel;
};
constexpr ZoneLabels kBetaLabels{kBetaZoneLabel, kBetaRegionLabel};

// Calls visit(requirement) for each requirement over labels in each term of the affinity.
template <typename Volume, typename Visit>
void ForEachRequirement(Volume& volume, Visit visit) {
  if (!volume.spec.node_affinity) return;
  for (auto& term : volume.spec.node_affinity->required.terms) {
    std::for_each(term.match_expressions.begin(), term.match_expressions.end(), visit);
  }
}

bool AsksBy(std::string_view key, const PersistentVolume& volume) {
  bool found = false;
  ForEachRequirement(volume, [&](const NodeRequirement& one) { found = found || one.key == key; });
  return found;
}

// A key that only has to exist has no values.
bool AsksForValuesBy(std::string_view key, const PersistentVolume& volume) {
  bool found = false;
  ForEachRequirement(volume, [&](const NodeRequirement& one) {
    found = found || (one.key == key && !one.values.empty());
  });
  return found;
}

void Rename(std::string_view key, std::string_view new_key, PersistentVolume& volume) {
  ForEachRequirement(volume, [&](NodeRequirement& one) {
    if (one.key == key) one.key = std::string(new_key);
  });
}

// A term more would be an alternative; so each term that is there gets the requirement.
void Require(std::string_view key, const std::vector<std::string>& values,
             PersistentVolume& volume) {
  std::set<std::string> distinct(values.begin(), values.end());
  distinct.erase("");
  if (distinct.empty()) return;
  if (!volume.spec.node_affinity) volume.spec.node_affinity.emplace();
  std::vector<NodeSelectorTerm>& terms = volume.spec.node_affinity->required.terms;
  if (terms.empty()) terms.emplace_back();
  for (NodeSelectorTerm& term : terms) {
    term.match_expressions.push_back(
        {std::string(key), NodeOperator::kIn, {distinct.begin(), distinct.end()}});
  }
}

std::optional<std::string> LabelOf(const PersistentVolume& volume, std::string_view label) {
  const auto found = volume.metadata.labels.find(std::string(label));
  if (found == volume.metadata.labels.end()) return std::nullopt;
  return found->second;
}

// What the affinity has goes before what the labels have, and the present labels before the beta
// ones.
ZoneLabels LabelsUsedBy(const PersistentVolume& volume) {
  if (AsksBy(kZoneLabel, volume)) return {};
  if (AsksBy(kBetaZoneLabel, volume)) return kBetaLabels;
  if (LabelOf(volume, kZoneLabel)) return {};
  if (LabelOf(volume, kBetaZoneLabel)) return kBetaLabels;
  return {};
}

}  // namespace

std::vector<std::string> ZonesOf(std::string_view label_value) {
  std::vector<std::string> zones;
  for (;;) {
    const size_t end = label_value.find(kZoneDelimiter);
    zones.emplace_back(label_value.substr(0, end));
    if (end == std::string_view::npos) return zones;
    label_value.remove_prefix(end + kZoneDelimiter.size());
  }
}

void TranslateZone(std::string_view zone_key, PersistentVolume& volume) {
  const ZoneLabels labels = LabelsUsedBy(volume);
  if (AsksForValuesBy(labels.zone, volume)) {
    Rename(labels.zone, zone_key, volume);
  } else if (const std::optional<std::string> label = LabelOf(volume, labels.zone)) {
    Require(zone_key, ZonesOf(*label), volume);
  }
  if (labels.region == kBetaRegionLabel && AsksForValuesBy(kBetaRegionLabel, volume)) {
    Rename(kBetaRegionLabel, kRegionLabel, volume);
  }
}

void TranslateZoneAndRegion(std::string_view zone_key, std::string_view region_key,
                            PersistentVolume& volume) {
  const ZoneLabels labels = LabelsUsedBy(volume);
  const std::pair<std::string_view, std::string_view> keys[] = {{labels.zone, zone_key},
                                                                {labels.region, region_key}};
  for (const auto& [label_name, key] : keys) {
    if (AsksForValuesBy(label_name, volume)) {
      Rename(label_name, key, volume);
    } else if (const std::optional<std::string> label = LabelOf(volume, label_name)) {
      Require(key, {*label}, volume);
    }
  }
}

}  // namespace volumed
