// Every row, from its declaration: each member of the record is a field, once.
#include <gtest/gtest.h>

#include <tuple>

#include "fakes/wire_declaration.h"
#include "operation/record_rows.h"

namespace volumed {

template <>
struct FlatParts<PodVolumeRecord> {
  using Types = std::tuple<PodVolumeKey, PublishedContent, Freshness, GivenStorage>;
};
template <>
struct FlatParts<FormatRecord> {
  using Types = std::tuple<DeviceIdentity>;
};
template <>
struct FlatParts<MappedDeviceRecord> {
  using Types = std::tuple<DeviceIdentity>;
};
template <>
struct FlatParts<ProvisionRecord> {
  using Types = std::tuple<ClaimKey>;
};
template <>
struct FlatParts<ClaimResizeRow> {
  using Types = std::tuple<ClaimResize>;
};
template <>
struct FlatParts<ClaimBindingRow> {
  using Types = std::tuple<ClaimBindingRecord, ClaimBinding, ClaimKey>;
};
template <typename T>
struct FlatParts<ObjectRow<T>> {
  using Types = std::tuple<T, ObjectKey>;
};
template <>
struct FlatParts<ObjectSourceRow> {
  using Types = std::tuple<ObjectSourceRecord, KnownDirectory>;
};
template <>
struct FlatParts<StorageFileRow> {
  using Types = std::tuple<StorageFile, StorageObject>;
};
template <>
struct FlatParts<StorageOwnerRow> {
  using Types = std::tuple<StorageOwnerRecord, StorageObject>;
};
template <>
struct FlatParts<StorageReservationRecord> {
  using Types = std::tuple<StorageHolder, StorageObject>;
};

namespace {

TEST(RecordFields, AreEveryMemberOnce) {
  EXPECT_EQ(WireDeclaration::ProblemOf<PodVolumeRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<DeviceRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PodRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<HoldRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ClaimBindingRow>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ProvisionRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ObjectRow<ObjectUidRecord>>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ObjectRow<KnownObjectRecord>>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ObjectRow<DeletedObjectRecord>>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<ObjectSourceRow>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<CommandNumberRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<StorageOwnerRow>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<StorageReservationRecord>(), "");
}

struct Whole {
  PodVolumeKey key;
  int number = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.key.pod);
    v(2, m.number);
  }
};

}  // namespace

template <>
struct FlatParts<Whole> {
  using Types = std::tuple<PodVolumeKey>;
};

TEST(RecordFields, AMemberOfAPartThatIsForgottenIsNoticed) {
  EXPECT_EQ(WireDeclaration::ProblemOf<Whole>(), "2 of 3 members are declared");
}

}  // namespace volumed
