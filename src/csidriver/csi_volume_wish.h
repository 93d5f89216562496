// What a CreateVolume asks for, in words of the pool; and what else of the Controller service's
// messages stands for something of a pool.
//
// All are pure; threads: any. Blocks: never.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "csi.pb.h"
#include "csidriver/csi_capability_wish.h"
#include "pool/pool_volumes.h"

namespace volumed {

// From where the volumes of this driver can be reached: the nodes, and the key of the topology that
// has their ids as its values.
struct CsiPlaces {
  std::string key;              // PoolTopologyLabel()
  std::set<std::string> nodes;  // this one, and those that are configured besides
};

// The places of this driver's volumes.
CsiPlaces CsiPlacesOf(const std::string& driver, const std::string& node,
                      const std::set<std::string>& other_nodes);

// Whether volumes can be reached from there. A topology without segments is everywhere; keys are
// compared without their case, as the specification has it.
bool IsReachable(const CsiPlaces& places, const ::csi::v1::Topology& topology);

// Whether something that this driver makes can be where it has to be. Errors, not applied:
// ResourceExhausted.
Status CheckReachable(const ::csi::v1::TopologyRequirement& requirement, const CsiPlaces& places);

// The places, each as a topology.
google::protobuf::RepeatedPtrField<::csi::v1::Topology> CsiTopologyOf(const CsiPlaces& places);

// The name of the pool's volume that a CO's CreateVolume with this name makes and finds. A claim of
// this node has its volume by the name of its PersistentVolume, and an external-provisioner calls
// its volumes exactly so ("pvc-<uid>"). If the two were one name, the caller of the one would be
// given the data of the other, and could delete it. So this name begins with "csi:" or "csi#", and
// no PersistentVolume's name has either character; two names of COs never become one. The names of
// snapshots and of groups are made likewise, so that a CO never finds the snapshot of an object of
// this node, or of a clone.
// Source: kubernetes pkg/apis/core/validation (ValidatePersistentVolumeName is a DNS subdomain).
std::string PoolNameOfCsi(const std::string& name);
// Whether a CO has given the volume, snapshot or group of this name its name.
bool IsPoolNameOfCsi(std::string_view name);

// Errors, not applied: InvalidArgument for capabilities and parameters that are not known or do not
// agree, and for modes of several nodes if there is one node; ResourceExhausted, if a volume cannot
// be where it has to be. A content source is taken as it is, as one of `driver`, which is this one:
// whether it is there and fits the pool finds out when it makes the volume. REQUIRES: the request
// keeps the rules (CheckCsiRequest).
Result<PoolVolumeWish> ParseCsiVolumeWish(const ::csi::v1::CreateVolumeRequest& request,
                                          const CsiPlaces& places, const std::string& driver);

// Parameters of a volume that is to be usable in all of these ways: with the filesystem that they
// name. Errors, not applied: InvalidArgument, if the parameters name another one.
Result<StringMap> CsiPoolParameters(const google::protobuf::Map<std::string, std::string>& given,
                                    const std::vector<CsiCapabilityWish>& wishes);

// The size that the volume gets by a call that asks for this one: what it has if that is enough, or
// if nothing is said, and what an earlier call has begun to give it if it is to grow at all.
// Errors, not applied: InvalidArgument for a negative number, and for a limit below what is
// required; OutOfRange, if that size is beyond the limit, and of an export, which has none.
Result<int64_t> ParseCsiGrowth(const ::csi::v1::CapacityRange& range,
                               const PoolVolumeRecord& volume);

// Why no volume of this driver can be had in such a mode, for people; empty if one can.
std::string WhyNotInMode(CsiAccessMode mode, const CsiPlaces& places);
// The same of this volume: of an export others may have the files, whatever nodes there are here.
std::string WhyNotInMode(const PoolVolumeRecord& volume, CsiAccessMode mode,
                         const CsiPlaces& places);

// What an answer says of the volume, and of what it was made.
::csi::v1::Volume CsiVolumeOf(const PoolVolumeRecord& record, const CsiPlaces& places);

}  // namespace volumed
