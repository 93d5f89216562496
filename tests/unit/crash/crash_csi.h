// The CSI driver of a CrashWorld, and what a correct agent owes to it and to its volumes: rules for
// every call that changes something, beside those of crash_monitor.h. The driver's mounts are those
// of the fake kernel; what it has made outlives agents, and the driver itself.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "csi/rpc/csi_channel.h"
#include "kube/object_meta.h"

namespace volumed {

class CrashWorld;

inline constexpr const char* kCrashCsiDriver = "disk.example.com";
inline constexpr const char* kCrashCsiSocket = "/var/lib/volumed/plugins/disk/csi.sock";
inline constexpr const char* kCrashCsiNodeId = "node-a";

// Ends the agent, or the driver alone, at one of the calls that change something.
struct CsiEnd {
  uint64_t number = 0;  // of the call, counted from the agent's start
  bool after = false;   // its effect is made
  bool driver_alone = false;
};

// How a call goes that changes something.
enum class CsiHow { kWell, kRefused, kAnswerLost, kHangs, kDiesBefore, kDiesAfter, kLies };

struct CsiAbout;

struct CsiTruth {
  struct Volume {
    std::string name;    // by which it was asked for; "": it was always there
    std::string device;  // its node
    int64_t bytes = int64_t{1} << 30;
    bool attached = false;  // to this node
    bool one_pod = false;   // ReadWriteOncePod
    std::string pod;        // which got it last, if it is of one pod
    bool inline_of_pod = false;
    std::set<std::string> staged;     // paths
    std::set<std::string> published;  // likewise
  };
  // A call, by its RPC and what it is about: a staging path, a target, the node.
  using Call = std::pair<std::string, std::string>;

  std::map<std::string, Volume> volumes;  // by handle
  std::set<std::string> made;             // all handles that there ever were
  bool stages = true;                     // STAGE_UNSTAGE_VOLUME
  bool attaches = false;                  // PUBLISH_UNPUBLISH_VOLUME
  bool makes = false;                     // CREATE_DELETE_VOLUME and EXPAND_VOLUME
  bool away = false;                      // nobody starts it
  uint64_t release = 1;                   // another one registers anew

  // ---- the process
  bool alive = true;
  uint64_t inode = 1;   // of its socket
  uint64_t calls = 0;   // that change something, since the agent's start
  uint64_t deaths = 0;  // of the driver alone, likewise
  std::optional<CsiEnd> end;
  // Asked for each such call; empty: all go well.
  std::function<CsiHow(const CsiAbout& about)> how;
  bool agent_is_dead = false;

  // ---- for the rules; by handle
  std::map<std::string, std::multiset<Call>> in_flight;
  // Calls of which nobody knows whether they were made.
  std::map<std::string, std::set<Call>> open;
  std::map<std::string, std::string> publish_context;  // what attaching has answered
  // The last calls and what came between them, for whoever looks for a fault.
  std::map<std::string, std::deque<std::string>> history;
};

// ---- the driver's side

// What a volume has from its beginning on this node.
void AddCsiVolume(CrashWorld& world, const std::string& handle, CsiTruth::Volume volume = {});
std::string CsiDeviceOf(const std::string& handle);
// A new agent begins; no driver dies by itself.
void BeginCsiAgent(CrashWorld& world);
// What a reboot takes of it, and of what is kept of its volumes.
void RebootCsi(CrashWorld& world, bool power_loss);
// What it does for a call, and says of it.
CsiChannel::AnyAnswer DoCsi(CrashWorld& world, const google::protobuf::Message& request);
// Whether the RPC may change something for a volume.
bool ChangesCsi(const google::protobuf::Message& request);

// ---- the rules

// Whose target it is, mounted or raw; "" for nobody's.
std::string PodOfCsiTarget(const CrashWorld& world, const std::string& target);

// What a call is about.
struct CsiAbout {
  std::string handle;
  CsiTruth::Call call;
};
CsiAbout AboutOf(const google::protobuf::Message& request);
// The call is about to be made.
void CheckCsiCall(CrashWorld& world, const google::protobuf::Message& request);
// Whether nobody knew before whether it was made.
bool BeginCsiCall(CrashWorld& world, const CsiAbout& about);
// What its end tells the agent.
enum class CsiHeard {
  kDone,     // so whoever has repeated or taken back a call knows what became of it
  kRefused,  // this time it was not made
  kNothing,
};
void EndCsiCall(CrashWorld& world, const CsiAbout& about, bool was_open, CsiHeard heard);

// Volumes of pods that have a right to them are whole.
void CheckCsiVolume(CrashWorld& world, const std::string& pod, const std::string& spec,
                    const std::string& when);
// At the end of a step: no volume that nobody knows of, and one of a claim at most.
void CheckCsiProvisioned(CrashWorld& world, const std::string& when);
// "" if nothing of its volumes is on the node; else what.
std::string LeftOfCsi(const CrashWorld& world);
// Something happens to a volume; to all for an empty handle.
void NoteCsi(CrashWorld& world, const std::string& handle, const std::string& what);
std::string CsiHistoryText(const CrashWorld& world);
// What is compared.
std::string CsiText(const CrashWorld& world);

}  // namespace volumed
