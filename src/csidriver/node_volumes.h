// The operations that a CO asks of this node: a volume of a pool is staged, published, made larger,
// and taken away again. Each is one of the operations on volumes at places that a CO gave
// (operation/given_place.h), with what the CSI specification asks besides: whether a repeated call
// asks for what is there, and the lease that says which node has the volume.
//
// All of that is decided within the operation, when it has the volume's device or target for
// itself, by the rows and the mount table; nothing at a place is ever opened for it.
// Source: CSI spec v1.13.0, NodeStageVolume, NodeUnstageVolume, NodePublishVolume,
// NodeUnpublishVolume, NodeExpandVolume.
//
// Of each Run: Threads: one at a time per key. Blocks: until the steps' deadlines and the store.
// Its errors are those of the CSI specification: NotFound is about the volume, and AlreadyExists
// about what it is at this place; what is missing or taken on the node is FailedPrecondition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "csidriver/csi_capability_wish.h"
#include "csidriver/csi_publish_rules.h"
#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "os/safe_path.h"
#include "pool/pool_record.h"
#include "pool/pool_volumes.h"
#include "volume/volume_spec.h"

namespace volumed {

struct NodeStage {
  std::string id;
  SafePath place;
  CsiCapabilityWish capability;
  VolumeSpec spec;  // NodeSpecOf() of these
  int64_t size_bytes = 0;
  PoolLease lease = {};      // by_stage
  int64_t most_volumes = 0;  // of the node, as PoolVolumes::TakeLease has it
  pid_t caller = 0;          // as CheckCallerSees() has it
};
// The key is the device's, which it uses exclusively. Takes a lease for the node if it has none;
// one that it took goes again if the volume is certainly not staged in the end.
// Errors, not applied: FailedPrecondition, naming the holder, if another node's lease excludes this
// one, if the volume is staged elsewhere or a pod has it, if something else is mounted at the
// place, or if the caller would not see it there; AlreadyExists, if it is staged there with another
// capability. Those of PoolVolumes::TakeLease and of MountDevice.
struct StageNodeVolume : OperationOf<Unit> {
  StageNodeVolume(PoolVolumes& of, NodeStage stage) : volumes(&of), request(std::move(stage)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  NodeStage request;
};

struct NodeUnstage {
  std::string id;
  SafePath place;
  // The volume, for a place of which no row says what is there.
  std::optional<VolumeSpec> spec = std::nullopt;
};
// The inverse. Success if the volume is not staged at this place, wherever else it is. The lease
// that staging has taken, under whatever name of the node, goes once the volume is staged nowhere.
// Errors: FailedPrecondition, not applied, while a target has it, if the place is such a target, or
// one where the volume is for a pod of this node; those of UnmountDevice and of
// PoolVolumes::EndLease.
struct UnstageNodeVolume : OperationOf<Unit> {
  UnstageNodeVolume(PoolVolumes& of, NodeUnstage unstage)
      : volumes(&of), request(std::move(unstage)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  NodeUnstage request;
};

// Ends what staging has taken of a volume that is staged nowhere, by its row and by the mount
// table: an agent that was killed between the two has left it, or one that had another name for the
// node. Nobody else has such leases: they are in this agent's records. Nothing while those are in
// doubt. REQUIRES: the caller has the volume's device for itself. Errors: those of IsShownAnywhere
// and of PoolVolumes::EndLease.
Status EndStaleLeases(const OperationParts& parts, PoolVolumes& volumes, const std::string& id);

struct NodePublish {
  std::string id;
  SafePath staging;
  SafePath target;
  CsiPublication wanted;  // PublicationWanted() of these
  VolumeSpec spec;        // NodeSpecOf() of these
  std::string pod = {};   // its uid, if the CO says it
  pid_t caller = 0;       // as CheckCallerSees() has it
};
// The key is the target's (TargetKey); it uses the device exclusively. Errors, not applied:
// FailedPrecondition, if the volume is not staged at `request.staging`, if it is staged for readers
// and this one writes, if it is a block volume that is staged for writing and this one only reads,
// if something else is at the target, a file with content included, or if the caller would not see
// it there; those of DecideCsiPublish.
// Those of PoolVolumes::Throttle, which comes before the pod has the volume, and also if it has it
// already; those of MountVolume or MapVolume.
struct PublishNodeVolume : OperationOf<Unit> {
  PublishNodeVolume(PoolVolumes& of, NodePublish publish)
      : volumes(&of), request(std::move(publish)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  NodePublish request;
};

struct NodeUnpublish {
  std::string id;
  SafePath target;
  std::optional<VolumeSpec> spec = std::nullopt;  // as in NodeUnstage
};
// The inverse: takes the volume away, and what was made at the target. Success if the volume is not
// published there. Errors: FailedPrecondition, not applied, if it is staged there, or is there for
// a pod of this node; those of UnmountVolume or UnmapVolume.
struct UnpublishNodeVolume : OperationOf<Unit> {
  UnpublishNodeVolume(PoolVolumes& of, NodeUnpublish unpublish)
      : volumes(&of), request(std::move(unpublish)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  NodeUnpublish request;
};

struct NodeExpand {
  std::string id;
  std::string driver;  // by which PersistentVolumes name the pools
  // What the volume is to have; more than it has is promised by its pool first.
  int64_t bytes = 0;
};
// The key is that of ExpandVolume; it uses the device exclusively. Makes the filesystem, or the
// device of a block volume, as large as the volume is; its result is that size. Errors, not
// applied: FailedPrecondition, if the volume is not staged at a place that a CO gave, if it is
// staged for readers and has a filesystem, and for an ext3 or ext4 that does not grow in use: the
// pool has made the volume larger by then, and NodeStage makes the filesystem follow; those of
// ExpandPoolVolume and of ExpandVolume.
struct ExpandNodeVolume : OperationOf<int64_t> {
  ExpandNodeVolume(PoolVolumes& of, NodeExpand expand) : volumes(&of), request(std::move(expand)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      int64_t& result) const;
  PoolVolumes* volumes;
  NodeExpand request;
};

}  // namespace volumed
