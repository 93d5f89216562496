// The maps of requests, filled. Internal to the builders of requests: what has secrets in it is not
// to be logged, stored, or printed but by csi/rpc.
#pragma once

#include <google/protobuf/map.h>

#include <string>

#include "csi/csi_capabilities.h"
#include "kube/object_meta.h"

namespace volumed {

using RequestMap = google::protobuf::Map<std::string, std::string>;

inline void PutTexts(const StringMap& from, RequestMap& to) {
  for (const auto& [key, text] : from) to[key] = text;
}

inline void PutSecrets(const CsiSecretValues& from, RequestMap& to) {
  for (const auto& [key, secret] : from) to[key] = secret.Reveal();
}

}  // namespace volumed
