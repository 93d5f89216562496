// What CSI drivers do wrong, as data: what a fake driver's script is, what has to be seen of the
// volume meanwhile, and what becomes of it. tests/integration/csi/driver_table_test.cc runs them.
#pragma once

#include <string>
#include <vector>

namespace volumed {

// While which call the driver does it.
enum class BehaviourMoment {
  kComes,  // from before the pod is there
  kGoes,   // from before the pod of a volume that is set up is deleted
  kGrows,  // from before the volume of a pod is made larger
  kLives   // from a moment at which the volume is set up, and nothing is asked
};

struct CsiBehaviour {
  const char* number;  // of the list of behaviours, also the name of driver, volume and pod
  const char* what;
  BehaviourMoment moment = BehaviourMoment::kComes;
  const char* script = "[]";  // rules (fakes/csi_fake_script.h)
  // Options of the driver that are not the usual ones, as JSON.
  const char* options = "{}";
  bool attaches = false;     // its controller does
  bool provisioned = false;  // its claim's volume is made by it
  bool block = false;
  bool read_only = false;
  // What has to be seen while the script holds. The state is as CsiAgentTest::StateOf() has it,
  // once the text has been seen; the text is in `volumectl explain` of the pod, or in `volumectl
  // describe` of the claim and of the persistent volume.
  const char* state = "";
  const char* says = "";
  // Of what is over when one looks, or is about no pod any more: in `volumectl csi --trace` of the
  // driver, or in the log's lines that name it.
  const char* kept = "";
  // The phase that the pod reaches while the script holds; "": none, the script ends first.
  const char* reaches = "";
  // So many calls of this RPC at least, while the script holds.
  const char* rpc = "";
  int calls = 0;
  bool is_lie = false;  // it is counted as one
  // What the script has left is there: by the same call it does not get right, so the pod goes
  // without having become Ready.
  bool stays_wrong = false;
  // Another mount lies upon what was published, as a driver makes one that was asked twice.
  bool mount_upon = false;
  // A file that the driver has left is to be removed by a person.
  const char* remove = "";  // below the target
};

const std::vector<CsiBehaviour>& CodeBehaviours();    // 1-10
const std::vector<CsiBehaviour>& AnswerBehaviours();  // 11-19
const std::vector<CsiBehaviour>& PublishLies();       // 45-50, 58
const std::vector<CsiBehaviour>&
TeardownLies();  // 51-54, 59; 62 is in CsiAttachTest: a list is asked for once in 30 s
const std::vector<CsiBehaviour>& FigureBehaviours();  // 55-57, 60, 61
std::vector<CsiBehaviour> AllCsiBehaviours();

// What a row lacks that each must have: a state, and a text that tells what went wrong. "" if it
// lacks nothing.
std::string WhatIsMissing(const CsiBehaviour& row);

}  // namespace volumed
