#include "volume/csi_topology.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volumed {
namespace {

using Values = std::vector<std::string>;

PersistentVolume Labelled(const std::string& label, const std::string& value) {
  PersistentVolume volume;
  volume.metadata.labels[label] = value;
  return volume;
}

NodeRequirement In(const char* key, Values values) {
  return {key, NodeOperator::kIn, std::move(values)};
}

PersistentVolume AskingFor(std::vector<NodeSelectorTerm> terms) {
  PersistentVolume volume;
  volume.spec.node_affinity.emplace().required.terms = std::move(terms);
  return volume;
}

std::vector<NodeSelectorTerm> TermsOf(const PersistentVolume& volume) {
  return volume.spec.node_affinity ? volume.spec.node_affinity->required.terms
                                   : std::vector<NodeSelectorTerm>();
}

TEST(CsiTopology, ALabelMayNameSeveralZones) {
  EXPECT_EQ(ZonesOf("a"), Values{"a"});
  EXPECT_EQ(ZonesOf("a__b"), (Values{"a", "b"}));
  EXPECT_EQ(ZonesOf("a_b"), Values{"a_b"});
  EXPECT_EQ(ZonesOf("a____b__"), (Values{"a", "", "b", ""}));
  EXPECT_EQ(ZonesOf(""), Values{""});
}

TEST(CsiTopology, AVolumeThatNamesNoZoneCanBeUsedEverywhere) {
  PersistentVolume volume;
  TranslateZone("csi/zone", volume);
  TranslateZoneAndRegion("csi/zone", "csi/region", volume);
  EXPECT_FALSE(volume.spec.node_affinity.has_value());
  volume = Labelled(kZoneLabel, "__");
  TranslateZone("csi/zone", volume);
  EXPECT_FALSE(volume.spec.node_affinity.has_value());
}

TEST(CsiTopology, TheZonesOfTheLabelAreAskedForOnceEachAndInOrder) {
  PersistentVolume volume = Labelled(kBetaZoneLabel, "b__a__b__");
  TranslateZone("csi/zone", volume);
  EXPECT_EQ(TermsOf(volume), (std::vector<NodeSelectorTerm>{{{In("csi/zone", {"a", "b"})}, {}}}));
}

TEST(CsiTopology, EachTermIsAnAlternativeAndSoEachGetsTheZone) {
  PersistentVolume volume =
      AskingFor({{{In("cpu", {"x"})}, {}}, {{}, {In("metadata.name", {"n"})}}});
  volume.metadata.labels[kZoneLabel] = "a";
  TranslateZone("csi/zone", volume);
  EXPECT_EQ(TermsOf(volume), (std::vector<NodeSelectorTerm>{
                                 {{In("cpu", {"x"}), In("csi/zone", {"a"})}, {}},
                                 {{In("csi/zone", {"a"})}, {In("metadata.name", {"n"})}}}));
}

TEST(CsiTopology, WhatTheAffinityAsksForGoesBeforeTheLabel) {
  PersistentVolume volume = AskingFor({{{In(kZoneLabel, {"a"})}, {}}});
  volume.metadata.labels[kZoneLabel] = "b";
  TranslateZone("csi/zone", volume);
  EXPECT_EQ(TermsOf(volume), (std::vector<NodeSelectorTerm>{{{In("csi/zone", {"a"})}, {}}}));
  EXPECT_EQ(volume.metadata.labels.at(kZoneLabel), "b");
}

TEST(CsiTopology, ABetaRegionIsAskedForByThePresentLabelIfTheZoneWasBetaToo) {
  PersistentVolume volume =
      AskingFor({{{In(kBetaZoneLabel, {"a"}), In(kBetaRegionLabel, {"r"})}, {}}});
  TranslateZone("csi/zone", volume);
  EXPECT_EQ(
      TermsOf(volume),
      (std::vector<NodeSelectorTerm>{{{In("csi/zone", {"a"}), In(kRegionLabel, {"r"})}, {}}}));
  volume = AskingFor({{{In(kZoneLabel, {"a"}), In(kBetaRegionLabel, {"r"})}, {}}});
  TranslateZone("csi/zone", volume);
  EXPECT_EQ(
      TermsOf(volume),
      (std::vector<NodeSelectorTerm>{{{In("csi/zone", {"a"}), In(kBetaRegionLabel, {"r"})}, {}}}));
}

TEST(CsiTopology, ADriverWithAKeyForRegionsGetsBoth) {
  PersistentVolume volume = AskingFor({{{In(kZoneLabel, {"a"})}, {}}});
  volume.metadata.labels[kRegionLabel] = "r__s";
  TranslateZoneAndRegion("csi/zone", "csi/region", volume);
  EXPECT_EQ(
      TermsOf(volume),
      (std::vector<NodeSelectorTerm>{{{In("csi/zone", {"a"}), In("csi/region", {"r__s"})}, {}}}));
}

}  // namespace
}  // namespace volumed
