// The names of the enum values of claims, volume sources and the storage kinds in a manifest.
// Messages list them in this order. Every value has a name here. Threads: any. Blocks: no.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "kube/enum_names.h"
#include "kube/snapshot_objects.h"
#include "kube/storage_objects.h"

namespace volumed {

template <>
struct EnumNames<AccessMode> {
  static constexpr std::array<std::pair<AccessMode, std::string_view>, 4> kValues = {{
      {AccessMode::kReadWriteOnce, "ReadWriteOnce"},
      {AccessMode::kReadOnlyMany, "ReadOnlyMany"},
      {AccessMode::kReadWriteMany, "ReadWriteMany"},
      {AccessMode::kReadWriteOncePod, "ReadWriteOncePod"},
  }};
};

template <>
struct EnumNames<VolumeMode> {
  static constexpr std::array<std::pair<VolumeMode, std::string_view>, 2> kValues = {{
      {VolumeMode::kFilesystem, "Filesystem"},
      {VolumeMode::kBlock, "Block"},
  }};
};

template <>
struct EnumNames<LabelOperator> {
  static constexpr std::array<std::pair<LabelOperator, std::string_view>, 4> kValues = {{
      {LabelOperator::kIn, "In"},
      {LabelOperator::kNotIn, "NotIn"},
      {LabelOperator::kExists, "Exists"},
      {LabelOperator::kDoesNotExist, "DoesNotExist"},
  }};
};

template <>
struct EnumNames<NodeOperator> {
  static constexpr std::array<std::pair<NodeOperator, std::string_view>, 6> kValues = {{
      {NodeOperator::kIn, "In"},
      {NodeOperator::kNotIn, "NotIn"},
      {NodeOperator::kExists, "Exists"},
      {NodeOperator::kDoesNotExist, "DoesNotExist"},
      {NodeOperator::kGt, "Gt"},
      {NodeOperator::kLt, "Lt"},
  }};
};

template <>
struct EnumNames<ReclaimPolicy> {
  static constexpr std::array<std::pair<ReclaimPolicy, std::string_view>, 3> kValues = {{
      {ReclaimPolicy::kRetain, "Retain"},
      {ReclaimPolicy::kDelete, "Delete"},
      {ReclaimPolicy::kRecycle, "Recycle"},
  }};
};

template <>
struct EnumNames<PersistentVolumePhase> {
  static constexpr std::array<std::pair<PersistentVolumePhase, std::string_view>, 5> kValues = {{
      {PersistentVolumePhase::kPending, "Pending"},
      {PersistentVolumePhase::kAvailable, "Available"},
      {PersistentVolumePhase::kBound, "Bound"},
      {PersistentVolumePhase::kReleased, "Released"},
      {PersistentVolumePhase::kFailed, "Failed"},
  }};
};

template <>
struct EnumNames<PersistentVolumeClaimPhase> {
  static constexpr std::array<std::pair<PersistentVolumeClaimPhase, std::string_view>, 3> kValues =
      {{
          {PersistentVolumeClaimPhase::kPending, "Pending"},
          {PersistentVolumeClaimPhase::kBound, "Bound"},
          {PersistentVolumeClaimPhase::kLost, "Lost"},
      }};
};

template <>
struct EnumNames<VolumeBindingMode> {
  static constexpr std::array<std::pair<VolumeBindingMode, std::string_view>, 2> kValues = {{
      {VolumeBindingMode::kImmediate, "Immediate"},
      {VolumeBindingMode::kWaitForFirstConsumer, "WaitForFirstConsumer"},
  }};
};

template <>
struct EnumNames<SnapshotDeletionPolicy> {
  static constexpr std::array<std::pair<SnapshotDeletionPolicy, std::string_view>, 2> kValues = {{
      {SnapshotDeletionPolicy::kDelete, "Delete"},
      {SnapshotDeletionPolicy::kRetain, "Retain"},
  }};
};

template <>
struct EnumNames<FsGroupPolicy> {
  static constexpr std::array<std::pair<FsGroupPolicy, std::string_view>, 3> kValues = {{
      {FsGroupPolicy::kReadWriteOnceWithFsType, "ReadWriteOnceWithFSType"},
      {FsGroupPolicy::kFile, "File"},
      {FsGroupPolicy::kNone, "None"},
  }};
};

template <>
struct EnumNames<VolumeLifecycleMode> {
  static constexpr std::array<std::pair<VolumeLifecycleMode, std::string_view>, 2> kValues = {{
      {VolumeLifecycleMode::kPersistent, "Persistent"},
      {VolumeLifecycleMode::kEphemeral, "Ephemeral"},
  }};
};

template <>
struct EnumNames<AzureDataDiskCachingMode> {
  static constexpr std::array<std::pair<AzureDataDiskCachingMode, std::string_view>, 3> kValues = {{
      {AzureDataDiskCachingMode::kNone, "None"},
      {AzureDataDiskCachingMode::kReadOnly, "ReadOnly"},
      {AzureDataDiskCachingMode::kReadWrite, "ReadWrite"},
  }};
};

template <>
struct EnumNames<AzureDataDiskKind> {
  static constexpr std::array<std::pair<AzureDataDiskKind, std::string_view>, 3> kValues = {{
      {AzureDataDiskKind::kShared, "Shared"},
      {AzureDataDiskKind::kDedicated, "Dedicated"},
      {AzureDataDiskKind::kManaged, "Managed"},
  }};
};

}  // namespace volumed
