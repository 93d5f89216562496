// Every kind of record in its row: the bytes are what they were ever since, and what a row may not
// say is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "places.h"
#include "unit/operation/record_samples.h"

namespace volumed {
namespace {

std::string HexOfRow(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 0xf]};
  }
  return text;
}

std::string BytesOfHex(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

// "<version> <key> <bytes>".
std::string LineOf(const Record& row) {
  return std::to_string(row.version) + " " + HexOfRow(row.key) + " " + HexOfRow(row.bytes);
}

Record RowOfLine(const std::string& kind, const std::string& line) {
  const size_t key = line.find(' ') + 1;
  const size_t bytes = line.find(' ', key) + 1;
  return {kind, BytesOfHex(line.substr(key, bytes - 1 - key)),
          static_cast<uint32_t>(std::stoul(line)), BytesOfHex(line.substr(bytes))};
}

std::map<std::string, std::string> GoldenLines() {
  std::map<std::string, std::string> lines;
  std::ifstream file(SourcePath("tests/unit/operation/record_rows.golden"));
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

// A program wrote each of these rows, and there are nodes that have them: a line of the file is
// never changed. A new sample gets the line that this test says.
TEST(RecordRows, AreWrittenAndReadAsEver) {
  std::map<std::string, std::string> golden = GoldenLines();
  for (const RecordSample& sample : AllRecordSamples()) {
    EXPECT_EQ(golden[sample.name], LineOf(sample.row)) << sample.name;
    EXPECT_EQ(sample.problem_of(RowOfLine(sample.row.kind, golden[sample.name])), "")
        << sample.name;
    golden.erase(sample.name);
  }
  for (const auto& [name, line] : golden) ADD_FAILURE() << name << " is not written any more";
}

RecordSample SampleNamed(const std::string& name) {
  for (RecordSample& sample : AllRecordSamples()) {
    if (sample.name == name) return std::move(sample);
  }
  ADD_FAILURE() << "there is no sample " << name;
  return {};
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string NumberField(uint64_t number, uint64_t value) {
  return Varint(number << 3) + Varint(value);
}
std::string BytesField(uint64_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

// Of a field that comes twice the last counts.
struct Refusal {
  std::string sample;
  std::string added;
  std::string why;
};

std::vector<Refusal> AllRefusals() {
  const std::string object = BytesField(1, "Pod") + BytesField(2, "default");
  return {
      {"pod-volume full", NumberField(6, 4), "has state 4, which no volume of a pod can have"},
      {"pod-volume full", NumberField(6, 15), "has state 15, which no volume of a pod can have"},
      {"pod-volume full", NumberField(6, ~uint64_t{0}), "has state -1, which"},
      {"pod-volume full", BytesField(2, "\xff"), "is no valid message"},
      {"pod-volume full", BytesField(12, BytesField(1, "\xc3")), "is no valid message"},
      {"pod-volume full", BytesField(4, ""), "belongs under the key \"uid-1/\""},
      {"pod-volume full", BytesField(1, ""), "belongs under the key \"/"},
      {"pod-volume full", "\x08", "is no valid message"},
      {"volume-device full", NumberField(6, 0), "has state 0, which no device of a volume can"},
      {"volume-device full", BytesField(1, "p/w"), "belongs under the key \"p/w\""},
      {"volume-device full", BytesField(3, ""), "belongs under the key"},
      {"volume-device full", BytesField(12, BytesField(1, "\xff")), "is no valid message"},
      {"volume-device full", BytesField(15, BytesField(1, "\xff")), "is no valid message"},
      {"pod full", BytesField(1, "uid-2"), "belongs under the key \"uid-2\""},
      {"pod full", BytesField(8, "\xff"), "is no valid message"},
      {"hold process", BytesField(5, "/x"), "must name a pod, and either a pid or a cgroup"},
      {"hold cgroup", BytesField(5, ""), "must name a pod, and either a pid or a cgroup"},
      {"hold cgroup", BytesField(1, ""), "must name a pod, and either a pid or a cgroup"},
      {"hold cgroup", BytesField(5, "/y"), "belongs under the key \"u/cgroup//y\""},
      {"claim-binding full", NumberField(5, 4), "has state 4, which no binding can have"},
      {"claim-binding full", NumberField(5, ~uint64_t{0}), "has state -1, which no binding can"},
      {"claim-binding full", BytesField(1, ""), "belongs under the key \"\""},
      {"claim-binding full", BytesField(8, BytesField(1, "many")), "record claim-binding \"pv\" "},
      {"claim-binding full", BytesField(8, BytesField(2, "1Xi")), "record claim-binding \"pv\" "},
      {"claim-binding smallest", BytesField(8, ""), "record claim-binding \"pv\" "},
      {"provisioned-volume full", NumberField(6, 2), "has state 2, which no volume can have"},
      {"provisioned-volume full", BytesField(1, "pw"), "belongs under the key \"pw\""},
      {"provisioned-volume full", BytesField(7, "{}"), "has no readable PersistentVolume"},
      {"object-uid full", BytesField(1, "Cow"), "is of the unknown kind \"Cow\""},
      {"object-uid full", BytesField(1, ""), "is of the unknown kind \"\""},
      {"object-uid full", BytesField(4, ""), "has no uid"},
      {"object-uid full", BytesField(3, "x"), "belongs under the key \"PersistentVolumeClaim "},
      {"known-object full", BytesField(1, "Cow"), "is of the unknown kind \"Cow\""},
      {"known-object full", BytesField(2, "x"), "belongs under the key \"Secret x/"},
      {"known-object full", BytesField(10, BytesField(1, "\xff")), "is no valid message"},
      {"object-source full", BytesField(1, ""), "belongs under the key \"\""},
      {"object-source full", BytesField(7, ""), "is of the unknown kind \"\""},
      {"object-source full", BytesField(7, object + BytesField(4, "\xff")), "is no valid message"},
      {"deleted-object full", BytesField(1, "Cow"), "is of the unknown kind \"Cow\""},
      {"deleted-object full", BytesField(4, "v"), "belongs under the key"},
      {"storage-owner full", BytesField(1, ""), "belongs under the key \"\""},
      {"storage-owner full", NumberField(14, 1), "belongs under the key \"retained/pv/1\""},
      {"storage-owner full", BytesField(13, "\xff"), "is no valid message"},
      {"storage-reservation full", BytesField(1, ""), "belongs under the key \"\""},
  };
}

TEST(RecordRows, WhatNoRowMaySayIsRefused) {
  for (const Refusal& refusal : AllRefusals()) {
    RecordSample sample = SampleNamed(refusal.sample);
    sample.row.bytes += refusal.added;
    const std::string problem = sample.problem_of(sample.row);
    EXPECT_NE(problem.find(refusal.why), std::string::npos)
        << refusal.sample << " and " << HexOfRow(refusal.added) << ": " << problem;
  }
}

// A later program, whose rows have the same version, may have written it.
TEST(RecordRows, WhatIsNotKnownIsPassedOver) {
  const std::string group = Varint(99 << 3 | 3) + NumberField(1, 2) + Varint(99 << 3 | 4);
  const std::string fixed = Varint(99 << 3 | 1) + "12345678" + Varint(99 << 3 | 5) + "1234";
  const std::string unknown = NumberField(99, 1) + BytesField(99, "\xff") + group + fixed;
  // No kind has a number in its first field, but the numbers of commands have no bytes.
  for (RecordSample& sample : AllRecordSamples()) {
    const bool has_number = sample.row.kind == kCommandNumberRecordKind;
    sample.row.bytes += unknown;
    sample.row.bytes += has_number ? BytesField(1, "x") : NumberField(1, 3);
    EXPECT_EQ(sample.problem_of(sample.row), "") << sample.name;
  }
}

TEST(RecordRows, AModeThatIsNotKnownIsNone) {
  RecordSample sample = SampleNamed("storage-owner smallest");
  for (const uint64_t mode : {uint64_t{3}, uint64_t{300}, ~uint64_t{0}}) {
    Record row = sample.row;
    row.bytes += NumberField(9, mode);
    EXPECT_EQ(sample.problem_of(row), "") << mode;
  }
}

TEST(RecordRows, ContentThatIsNeverFreshHasNoFreshness) {
  RecordSample sample = SampleNamed("pod-volume smallest");
  sample.row.bytes += NumberField(19, 7);
  EXPECT_EQ(sample.problem_of(sample.row), "");
}

TEST(RecordRows, ALaterVersionIsRefusedAndAnEarlierOneIsRead) {
  for (RecordSample& sample : AllRecordSamples()) {
    sample.row.version += 100;
    EXPECT_NE(sample.problem_of(sample.row).find("this program knows up to"), std::string::npos)
        << sample.name;
    sample.row.version = 1;
    EXPECT_EQ(sample.problem_of(sample.row), "") << sample.name;
  }
}

TEST(RecordRows, ARowOfAnotherKindIsRefused) {
  const std::vector<RecordSample> all = AllRecordSamples();
  for (const RecordSample& sample : all) {
    for (const RecordSample& other : all) {
      if (other.row.kind == sample.row.kind) continue;
      EXPECT_EQ(sample.problem_of(other.row),
                "record of kind " + other.row.kind + " where " + sample.row.kind + " is expected");
    }
  }
}

}  // namespace
}  // namespace volumed
