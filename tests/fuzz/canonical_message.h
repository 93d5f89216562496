// Protobuf messages as bytes that can be compared: equal messages have equal bytes, which is not so
// of what SerializeAsString() makes of a map.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>

#include "fuzz/fuzz.h"

namespace volumed::fuzz {

template <typename Message>
std::string Canonical(const std::string& bytes) {
  Message message;
  FUZZ_CHECK(message.ParseFromString(bytes));
  std::string canonical;
  google::protobuf::io::StringOutputStream stream(&canonical);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  FUZZ_CHECK(message.SerializeToCodedStream(&out));
  out.Trim();
  return canonical;
}

}  // namespace volumed::fuzz
