// CsiFakeLog: what a fake CSI driver was asked, a line of JSON each, in a file that a test reads
// while the driver writes it, and that outlives the driver.
//
//   {"what":"begin","number":3,"rpc":"NodeStageVolume","volume":"v1","staging":"/..",..}
//   {"what":"end","number":3,"rpc":"NodeStageVolume","volume":"v1","code":0,"effect":"made",..}
//   {"what":"violation","number":4,"text":"..",..}     of the specification, by the caller
//   {"what":"start",..}, {"what":"listen",..},
//   {"what":"die",..}                                  of the driver
//
// A "begin" has the keys of secrets, never a value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace volumed {

// A line.
struct CsiFakeEntry {
  std::string what = {};
  int number = -1;
  std::string rpc = {};
  std::string volume = {};
  std::string staging = {};
  std::string target = {};
  std::string node = {};
  bool readonly = false;
  bool block = false;
  int64_t size_bytes = 0;
  std::vector<std::string> secret_keys = {};
  std::map<std::string, std::string> volume_context = {};
  std::map<std::string, std::string> publish_context = {};
  std::vector<std::string> mount_flags = {};
  std::string mount_group = {};
  int code = 0;
  std::string effect = {};
  std::string text = {};
  int64_t at_us = 0;  // of the machine's monotonic clock
  int pid = 0;
};

// Threads: any. Blocks: for a write to a file.
class CsiFakeLog {
 public:
  // Appends to the file; "": nothing is kept.
  explicit CsiFakeLog(const std::string& path);
  void Write(CsiFakeEntry entry);

 private:
  std::mutex mu_;
  Descriptor file_;
};

// All lines that are complete.
std::vector<CsiFakeEntry> ReadCsiFakeLog(const std::string& path);

// The calls of these entries as words, for expectations: "NodeStageVolume v1", in the order in
// which they began.
std::vector<std::string> CallsOf(
    const std::vector<CsiFakeEntry>& entries,
    const std::function<bool(const CsiFakeEntry&)>& counts = [](const CsiFakeEntry& entry) {
      return !entry.volume.empty();
    });
// What the caller did that it must not: the violations' texts.
std::vector<std::string> ViolationsOf(const std::vector<CsiFakeEntry>& entries);

}  // namespace volumed
