// What a proto file declares, as texts that can be compared: from a table of this folder
// (csi_fields.txt says how one is written), and from the descriptors of generated code.
// Threads: any. Blocks: never.
#pragma once

#include <google/protobuf/descriptor.h>

#include <istream>
#include <map>
#include <string>
#include <vector>

namespace volumed {

// "NodeStageVolumeRequest.secrets" is "5 m *", "message VolumeCondition" is "alpha", and so on.
using Declarations = std::map<std::string, std::string>;

struct ProtoTable {
  Declarations declarations;
  // What one level alone has: "<=1.12" or ">=1.13".
  std::map<std::string, std::string> levels;
  std::vector<std::string> problems;  // why the table cannot be read
};

ProtoTable ReadProtoTable(std::istream& in);

Declarations DeclarationsOf(const google::protobuf::FileDescriptor& file);

// What one of them lacks, or has otherwise; a line for each name.
std::vector<std::string> Differences(const Declarations& table, const Declarations& proto);

// Uses of what one level alone has by what the other level has too; a line for each.
std::vector<std::string> LevelProblems(const ProtoTable& table);

}  // namespace volumed
