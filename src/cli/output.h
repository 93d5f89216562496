// The forms of an answer: tables for people, JSON and YAML for programs. Every function that takes
// a format prints the whole message if it is for programs. Moments are Unix milliseconds. Threads:
// one. Blocks: as the stream.
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

// Takes "table", "wide", "json" or "yaml". Errors: InvalidArgument, not applied, naming the four
// formats.
Result<OutputFormat> ParseOutputFormat(const std::string& name);

// True for JSON and YAML: the whole message is printed, with all that a table would leave out.
bool IsForPrograms(OutputFormat format);

// Prints columns that are as wide as their widest cell, with two blanks between them and none at
// the end of a line. A width is a number of bytes. Rows may differ in length.
void PrintTable(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

// Prints the message as JSON or YAML, with the field names of agent.proto. As in protobuf's JSON, a
// field that has its default value is left out. REQUIRES: the format is for programs.
void PrintMessage(const google::protobuf::Message& message, OutputFormat format, std::ostream& out);

// One line for each pod. A pod from a summary, which has no volumes, is shown by its counts.
void PrintPods(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now_unix_ms,
               std::ostream& out);
// One line for each volume of the pods. REQUIRES: they are not from a summary.
void PrintVolumes(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// "; the data on disk of its volumes goes with it: scratch", or "" if there is none.
std::string DataThatGoes(const v1::AbsentObject& object);
// When a pod is replaced, why, and which of its data goes with it, as words that follow the pod's
// name: "is replaced in 3s: ...".
std::string ReplacementText(const v1::AbsentObject& pod, int64_t now_unix_ms);
// Prints what a command takes away: each object, and which volumes of a pod are mounted or have
// data on disk; objects that become Missing instead are in a table of their own. Prints "nothing
// goes" if nothing does.
void PrintGoing(const google::protobuf::RepeatedPtrField<v1::AbsentObject>& goes,
                std::ostream& out);
// Prints one line: "web.yaml: document 2: spec.volume: Pod default/web: ...". People count
// documents from 1; a problem of the file as a whole (-1) names none.
void PrintManifestProblem(const v1::ManifestProblem& problem, std::ostream& out);
// Whether the phase says that a command has deleted the object and that its manifest still has it.
bool IsRefused(const std::string& phase);
// Prints one line with the reason for an object that is refused, since nobody could guess what to
// do about it. Prints nothing for any other object.
void PrintRefusal(const std::string& name, const std::string& phase, const std::string& reason,
                  std::ostream& out);
// A table of the sources; below it, for each one, what is absent, replaced, Missing or not read,
// and the warnings of its manifests.
void PrintSources(const v1::GetSourcesResponse& sources, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// Whether the records are in recovery, why, and which steps are held back.
void PrintRecords(const v1::RecordsStatus& records, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// `volume` is the volume that was accepted; an empty one means all.
void PrintAccepted(const v1::AcceptRecordsResponse& accepted, const std::string& volume,
                   OutputFormat format, int64_t now_unix_ms, std::ostream& out);

// What a cell of a table shows of a text that may be empty.
std::string OrDash(const std::string& text);

int64_t NowUnixMs();
// "3m12s", "5d"; "-" for an unknown moment (0), "0s" for one that is still to come.
std::string FormatAge(int64_t since_unix_ms, int64_t now_unix_ms);
// The age of an object; kubectl's "<unknown>" if it is not known when the object was made.
std::string FormatCreation(int64_t created_unix_ms, int64_t now_unix_ms);

}  // namespace volumed
