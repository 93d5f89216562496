// CsiFakeDriver: a CSI driver for tests that run the real daemon: real gRPC on real sockets, the
// one of its registration included, real mounts (fakes/csi_fake_world.h), what it does wrong by a
// script that may change at any moment (fakes/csi_fake_script.h), and a log of what it was asked
// (fakes/csi_fake_log.h). Run in the test's own process, or by csi_fake_driver_program
// (fakes/csi_fake_process.h) where a driver has to die.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/csi_fake_world.h"

namespace volumed {

// A member that is left out of the JSON has the value that it has here.
struct CsiFakeOptions {
  std::string name = "fake.csi.example.com";
  std::string node_id = "node-a";
  std::string version = "1.0";
  std::string directory = {};     // its own: volumes, state.json
  std::string endpoint = {};      // the socket of its services
  std::string registration = {};  // that of its registration; "": it does not register
  std::string log = {};           // a file; "": none

  // What it says at its registration; "": the truth.
  std::string registered_name = {};
  std::string registered_endpoint = {};  // "none": an empty one
  std::string type = "CSIPlugin";
  std::vector<std::string> versions = {"1.0.0"};

  // By the names of the specification's enums.
  std::vector<std::string> plugin_capabilities = {};
  std::vector<std::string> node_capabilities = {"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS"};
  std::vector<std::string> controller_capabilities = {};  // none: there is no controller
  int64_t max_volumes = 0;
  std::map<std::string, std::string> topology = {};

  std::string volumes = "tmpfs";  // or "directory", "loop"
  int64_t size_bytes = int64_t{16} << 20;
  bool known_only = false;  // only volumes that CreateVolume made
  bool forgets = false;     // it begins without what an earlier one knew
};

std::string CsiFakeOptionsText(const CsiFakeOptions& options);
CsiFakeOptions ParseCsiFakeOptions(const std::string& json);

// Threads: any. Blocks: Tell() and the destructor, until its servers have ended.
class CsiFakeDriver {
 public:
  // It listens on return, first on the endpoint and then for its registration. `die` must end the
  // driver as a crash would; if it is empty the servers stop instead, soon.
  explicit CsiFakeDriver(CsiFakeOptions options, std::function<void()> die = {});
  ~CsiFakeDriver();

  // A command as JSON, and its answer: {"ok": true, ..} or {"problem": ".."}. One at a time:
  //   {"script": [..]}     these rules instead of those before
  //   {"release": true}    all calls that hang are answered now, as they should have been
  //   {"set": {..}}        other options: of what it says and can do
  //   {"forget": true}     it knows no volume any more
  //   {"stop": true}       its sockets go, and its connections; {"listen": true}
  //   {"unregister": true} the socket of its registration goes; {"register": true}
  //   {"status": true}     {"calls": how many it got, "held": how many hang}
  //   {"volumes": true}    {"volumes": {id: what it knows of it}}
  std::string Tell(std::string_view command);
  // The same, in short.
  void Script(std::string_view rules) { Tell(R"({"script": )" + std::string(rules) + "}"); }

 private:
  class Servers;
  std::unique_ptr<Servers> servers_;
};

}  // namespace volumed
