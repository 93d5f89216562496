// PdDriver: the CSI driver of Google's persistent disks over loop devices (tests/interop/pd). Its
// cloud, its node server and its registrar are a process each, so that a test may kill one and keep
// the others. Only processes that this object started are ever ended, and each dies with the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// What scripts/peers has built; "" if it has not.
std::string PeerPath(const std::string& name);
// "" if the peer is there, else what a test says that is skipped.
std::string WhyNoPeer(const std::string& name);

// A child process, which is killed by the destructor.
class PeerProcess {
 public:
  PeerProcess() = default;
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Its output and its errors are appended to files. False if it cannot be started.
  bool Start(const std::vector<std::string>& arguments, const std::string& output,
             const std::string& errors);
  // Sends the signal and waits for the end. Nothing if it does not run. Returns the wait status.
  int End(int signal);
  // Waits for it to end by itself; its exit status, or 128 and the signal.
  int Wait();
  bool Runs();

 private:
  pid_t pid_ = -1;
};

// A call that a server has answered.
struct PdCall {
  std::string method;
  std::string code;    // gRPC's word: OK, NotFound ...
  std::string volume;  // its ID, for CreateVolume its name; "" if the request has none
};

class PdDriver {
 public:
  static constexpr const char* kName = "pd.csi.storage.gke.io";
  static constexpr const char* kZone = "country-region-zone";
  static constexpr const char* kTopologyKey = "topology.gke.io/zone";

  struct Settings {
    std::string scratch;       // an empty directory for disks, state and logs; left as it is
    std::string kubelet_root;  // has, or gets, plugins and plugins_registry
    std::vector<std::string> nodes = {"it-node"};  // the cloud's; the server runs on the first
    std::string machine_type = "n1-standard-1";    // takes 127 disks; c4a-standard-1 takes 7
  };
  explicit PdDriver(Settings settings);
  // Ends what runs, and detaches the loop devices of its disks.
  ~PdDriver();
  PdDriver(const PdDriver&) = delete;
  PdDriver& operator=(const PdDriver&) = delete;

  // "" if it can run here, else what a test says that is skipped.
  static std::string WhyNot();

  // Each is true once it listens; the registrar once its socket is in the registry. All may be
  // called again after a kill.
  bool StartCloud();
  bool StartNode();
  bool StartRegistrar();
  bool Start() { return StartCloud() && StartNode() && StartRegistrar(); }

  bool NodeRuns() { return node_.Runs(); }
  bool CloudRuns() { return cloud_.Runs(); }
  void KillCloud();
  void KillNode();
  void KillRegistrar();  // its socket stays
  void EndRegistrar();   // SIGTERM: its socket goes
  void Stop();           // kills all three

  // What becomes of the next call of one method, at the server that it comes to and that runs or is
  // started later: before it is carried out, or when it is done and not yet answered.
  enum class When { kBefore, kAfter };
  enum class Fate { kServerDies, kHeld };
  void SetTrap(const std::string& method, When when, Fate fate);
  bool Sprung() const;  // the call has come that far
  void Release();       // one that is held goes on

  std::string cloud_socket() const { return settings_.scratch + "/cloud.sock"; }
  std::string node_socket() const;
  std::string registration_socket() const;
  // As the driver names it: projects/P/zones/Z/instances/N.
  std::string NodeId(size_t node = 0) const;
  // As the driver names it: projects/P/zones/Z/disks/NAME.
  static std::string HandleOf(const std::string& disk);
  std::string state_file() const { return FileOf("cloud/state.json"); }  // all the cloud knows

  // All calls that the two servers have answered, of each in its order.
  std::vector<PdCall> CloudCalls() const;
  std::vector<PdCall> NodeCalls() const;
  // How many calls of this method were answered with OK, of one volume or of all ("").
  int Answered(std::string_view method, std::string_view volume = "") const;
  // Disks that were detached while something used them: a caller that unstages first leaves none.
  int DetachedInUse() const;
  // "DEVICE IMAGE" for each loop device over a disk.
  std::vector<std::string> Attached() const;
  std::string Logs() const;  // the ends of what the servers logged, for a test that fails

 private:
  std::string FileOf(const std::string& name) const { return settings_.scratch + "/" + name; }
  std::vector<std::string> CommandOf(const std::string& role, const std::string& socket) const;

  Settings settings_;
  PeerProcess cloud_;
  PeerProcess node_;
  PeerProcess registrar_;
};

}  // namespace volumed
