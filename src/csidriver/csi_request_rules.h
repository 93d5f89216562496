// What the CSI specification asks of every request, whoever sends it: fields that must be there,
// sizes, names, and values that there are. It is held against a request before anybody else looks
// at it, so a handler never sees one that breaks a rule.
//
// The rules are looked up by descriptor, field by field and at all depths, so a request that a
// later proto adds has those of its fields at once. What a descriptor does not say (which fields an
// RPC requires, and of which another size is right) stands in tables in the .cc; a test holds them
// against the proto.
// Source: CSI spec v1.13.0, "Size Limits", "Required", "Secrets", and each message's fields.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

// A string has so many bytes at most, unless it is one of the two below.
inline constexpr size_t kMostCsiText = 128;
inline constexpr size_t kMostCsiNodeId = 256;
// PATH_MAX without its NUL.
inline constexpr size_t kMostCsiPath = 4095;
// The keys and values of a map together, and the mount flags of a capability.
inline constexpr size_t kMostCsiMap = 4096;

// All are pure; threads: any. Blocks: never.
//
// Whether the request keeps the rules. Errors: InvalidArgument, not applied, for the first rule
// that it breaks; the message names the field by its path in the request
// ("volume_capability.access_mode.mode") and has no value of it, which may be a secret.
Status CheckCsiRequest(const google::protobuf::Message& request);

// The fields that a message of this type must have, by the tables. A list or a map must not be
// empty, a oneof must be set.
std::vector<std::string> RequiredCsiFields(const google::protobuf::Descriptor& message);
// The most bytes of a string field, or of each string of a repeated one.
size_t MostCsiBytes(const google::protobuf::FieldDescriptor& field);

}  // namespace volumed
