// Requests in which every field has a value, and every secret one that a test can look for; and how
// drivers write such a value.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <vector>

#include "csi/rpc/csi_methods.h"

namespace volumed {

struct CanaryMessage {
  std::unique_ptr<google::protobuf::Message> message;
  std::vector<std::string> canaries;  // each is in the message once
};

// The canary as it is, as JSON in two ways, in Python's quotes, in a URL in three ways, in XML, in
// a shell's quotes, in base64, in hexadecimal digits. Each has canary's number, or none of its
// bytes.
std::vector<std::string> CanarySpellings(const std::string& canary);

// All fields at all depths; of a oneof its last one. The message refers to nothing else.
CanaryMessage CanaryMessageOf(const google::protobuf::Descriptor& type);

}  // namespace volumed
