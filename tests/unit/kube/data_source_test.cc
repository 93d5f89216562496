#include "kube/data_source.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(DataSource, AClaimThatNamesNoneHasNone) {
  EXPECT_FALSE(DataSourceOf({}).value());
  PersistentVolumeClaimSpec claim;
  claim.data_source_json = "null";
  EXPECT_FALSE(DataSourceOf(claim).value());
}

TEST(DataSource, TheReferenceCountsMoreThanTheOlderField) {
  PersistentVolumeClaimSpec claim;
  claim.data_source_json = R"({"kind":"PersistentVolumeClaim","name":"a"})";
  EXPECT_EQ(DataSourceOf(claim).value(), (DataSource{"", "PersistentVolumeClaim", "a", ""}));
  claim.data_source_ref_json =
      R"({"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s","namespace":"n"})";
  EXPECT_EQ(DataSourceOf(claim).value(),
            (DataSource{"snapshot.storage.k8s.io", "VolumeSnapshot", "s", "n"}));
}

TEST(DataSource, WhatIsNoReferenceIsRefusedAndNotTakenForNone) {
  for (const char* text :
       {"{}", "[]", "7", "{", R"({"kind":"K"})", R"({"name":"n"})", R"({"kind":7,"name":"n"})"}) {
    PersistentVolumeClaimSpec claim;
    claim.data_source_json = text;
    const auto source = DataSourceOf(claim);
    ASSERT_FALSE(source.ok()) << text;
    EXPECT_EQ(source.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace volumed
