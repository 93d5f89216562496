// CsiFakeScript: what a fake CSI driver does instead of what it is asked for, as rules that a test
// writes in JSON and may exchange at any moment. A call that no rule is for is done as it should
// be.
//
//   [{"rpc": "NodeStageVolume", "volume": "v1", "times": 1, "code": 13, "effect": "made"}]
//
// A rule is for calls of one RPC ("*": of all but the registration's), of one volume if it names
// one; the first one that is for a call, and has not been used up, is taken.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

struct CsiFakeRule {
  // Which calls.
  std::string rpc = "*";
  std::string volume = "";
  int skip = 0;    // so many of its calls are done as they should be
  int times = -1;  // then it is for so many; -1: for all

  // What becomes of the effect: "" (made if the code is 0), "made", "none", or a lie:
  //  NodePublishVolume  "no-mount" (a directory alone), "no-target" (nothing at all), "elsewhere",
  //                     "other-volume", "writable" (although read-only was asked), "two-layers";
  //                     of a block volume "file", "directory", "other-volume"
  //  NodeStageVolume    "no-target", "other-volume", "two-layers"
  //  NodeUnpublishVolume, NodeUnstageVolume
  //                     "one-layer" (only the topmost is taken away), "leave-file" (in the
  //                     directory, which stays)
  //  growth             "smaller" (half of what was asked for)
  //  other RPCs         none
  std::string effect = "";
  int before_ms = 0;  // waits before the effect
  int after_ms = 0;   // and before the answer

  // What is answered.
  int code = 0;
  std::string message = "";
  std::string answer = "";  // the response as protobuf's JSON, whatever the effect has to say
  bool hang = false;        // nothing, until it is released
  bool twice = false;
  bool no_message = false;  // OK, and the stream ends without a message
  bool garbage = false;     // bytes that are no message
  int huge_bytes = 0;       // a message of this size

  // The driver dies: "before" the effect, "after" it and before the answer, once it has "answered".
  std::string die = "";
  bool remove_sockets = false;  // and its sockets go with it
};

// The rules of this JSON. What is no rule is said in `problem`, with the rules that came before.
std::vector<CsiFakeRule> ParseCsiFakeRules(std::string_view json, std::string* problem);

// Threads: any. Blocks: never.
class CsiFakeScript {
 public:
  void Exchange(std::vector<CsiFakeRule> rules);
  // The rule for a call, which is counted; one that changes nothing if there is none.
  CsiFakeRule Take(std::string_view rpc, std::string_view volume);

 private:
  std::mutex mu_;
  std::vector<CsiFakeRule> rules_;
};

}  // namespace volumed
