// How answers are shown: tables for people, JSON and YAML for programs.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "base/result.h"

namespace volumed {

enum class OutputFormat { kTable, kWide, kJson, kYaml };

// InvalidArgument, not applied, naming the four that exist.
Result<OutputFormat> ParseOutputFormat(const std::string& name);

// JSON or YAML: the whole message, whatever a table would show of it.
bool IsForPrograms(OutputFormat format);

// Columns as wide as their widest cell, two blanks between them, none at the end of a line.
void PrintTable(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

// The message as JSON or YAML; field names as in agent.proto.
void PrintMessage(const google::protobuf::Message& message, OutputFormat format, std::ostream& out);

void PrintPods(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now_unix_ms,
               std::ostream& out);
void PrintVolumes(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// "; the data on disk of its volumes goes with it: scratch", or "".
std::string DataThatGoes(const v1::AbsentObject& object);
// When a pod is replaced, why, and which of its data goes with it.
std::string ReplacementText(const v1::AbsentObject& pod, int64_t now_unix_ms);
// What goes with a command: each object, and what of a pod is mounted or has data on the disk.
void PrintGoing(const google::protobuf::RepeatedPtrField<v1::AbsentObject>& goes,
                std::ostream& out);
// "web.yaml: document 2: spec.volume: Pod default/web: ...", one line.
void PrintManifestProblem(const v1::ManifestProblem& problem, std::ostream& out);
// A command has deleted it, and its manifest still has it.
bool IsRefused(const std::string& phase);
// Of an object that is refused one line with the reason: there is no way to guess what to do about
// it. Nothing of any other.
void PrintRefusal(const std::string& name, const std::string& phase, const std::string& reason,
                  std::ostream& out);
void PrintSources(const v1::GetSourcesResponse& sources, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
void PrintRecords(const v1::RecordsStatus& records, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// `volume`: the one that was accepted; empty: all.
void PrintAccepted(const v1::AcceptRecordsResponse& accepted, const std::string& volume,
                   OutputFormat format, int64_t now_unix_ms, std::ostream& out);

int64_t NowUnixMs();
// "3m12s", "5d"; "-" for an unknown moment.
std::string FormatAge(int64_t since_unix_ms, int64_t now_unix_ms);
// The age of an object; kubectl's "<unknown>" if nobody has said when it was made.
std::string FormatCreation(int64_t created_unix_ms, int64_t now_unix_ms);
// "12Mi", "3.4Gi", "517".
std::string FormatBytes(int64_t bytes);

}  // namespace volumed
