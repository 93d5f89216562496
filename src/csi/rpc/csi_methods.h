// The RPCs of csi.v1 and of the registration of a plugin: what each is called on the wire, whether
// it changes anything, and which field of its request says what it is about.
//
// Services, names, messages and streams are read from the descriptors, so a new RPC of the proto is
// here at once; what a descriptor does not say stands in one table in the .cc.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// An RPC that is not known to be read-only counts as mutating.
enum class CsiRpcKind { kReadOnly, kMutating };

struct CsiMethod {
  std::string service;  // "csi.v1.Node"
  std::string name;     // "NodeStageVolume"
  std::string path;     // "/csi.v1.Node/NodeStageVolume", as it is on the wire
  CsiRpcKind kind = CsiRpcKind::kMutating;
  bool streaming = false;  // its answer is a stream: CsiCallOptions::stream
  // The field of the request that names the object: "volume_id", "snapshot_id", "name". Empty: it
  // is about the driver.
  std::string key_field;
  const google::protobuf::Descriptor* request = nullptr;
  const google::protobuf::Descriptor* response = nullptr;
};

// All are pure; threads: any. What is returned lives as long as the program.
//
// In the order of the proto, csi.v1 first. No two have the same request type.
const std::vector<CsiMethod>& CsiMethods();

// By "NodeStageVolume", "Node/NodeStageVolume" or the path, with or without the slash in front.
// Null if there is none.
const CsiMethod* FindCsiMethod(std::string_view name);
const CsiMethod* CsiMethodOf(const google::protobuf::Descriptor* request);

// What the request is about: CsiKeyText() of its key field. Empty if the method has none. REQUIRES:
// the message is the method's request.
std::string CsiKeyOf(const CsiMethod& method, const google::protobuf::Message& request);
// The value of a key field, made printable, 256 bytes at most.
std::string CsiKeyText(std::string_view value);

}  // namespace volumed
