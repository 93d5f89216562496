// Requests in which every field has a value, and every secret one that a test can look for.
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

// All fields at all depths; of a oneof its last one. The message refers to nothing else.
CanaryMessage CanaryMessageOf(const google::protobuf::Descriptor& type);

}  // namespace volumed
