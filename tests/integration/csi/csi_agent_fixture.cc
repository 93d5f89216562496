#include "integration/csi/csi_agent_fixture.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "integration/loop_device.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

}  // namespace

void CsiAgentTest::SetUp() {
  AgentTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  settings["deadline-csi-call"] = "3s";
  fs::create_directories(root() + "/plugins_registry");
  fs::create_directories(drivers_directory());
}

// The worlds go before their mounts' names do: a loop device is found by its image.
void CsiAgentTest::TearDown() {
  if (!scratch().empty() && agent_pid() > 0 && AgentRuns()) KillAgent();
  std::error_code none;
  if (!scratch().empty()) {
    for (const auto& driver : fs::directory_iterator(drivers_directory(), none)) {
      CsiFakeWorld::Clear(driver.path().string());
    }
  }
  AgentTest::TearDown();
}

CsiFakeOptions CsiAgentTest::OptionsOf(const std::string& driver) const {
  CsiFakeOptions options;
  options.name = driver;
  // The volume's own mount would be a second one of what is staged, which the daemon, as kubelet,
  // takes for a user of it: a directory has none.
  options.volumes = "directory";
  options.directory = drivers_directory() + "/" + driver;
  options.log = drivers_directory() + "/" + driver + ".log";
  options.endpoint = root() + "/plugins/" + driver + "/csi.sock";
  options.registration = root() + "/plugins_registry/" + driver + "-reg.sock";
  return options;
}

std::vector<CsiFakeEntry> CsiAgentTest::LogOf(const std::string& driver) const {
  return ReadCsiFakeLog(OptionsOf(driver).log);
}

int CsiAgentTest::CountOf(const std::string& driver, const std::string& rpc) const {
  int count = 0;
  for (const CsiFakeEntry& entry : LogOf(driver)) {
    if (entry.what == "begin" && entry.rpc == rpc) ++count;
  }
  return count;
}

std::string CsiAgentTest::ToldOf(const std::string& driver) const {
  std::string told = "nothing";
  for (const CsiFakeEntry& entry : LogOf(driver)) {
    if (entry.what != "begin" || entry.rpc != "NotifyRegistrationStatus") continue;
    told = entry.text.empty() ? "yes" : entry.text;
  }
  return told;
}

bool CsiAgentTest::WaitTold(const std::string& driver, const std::string& text,
                            Milliseconds limit) const {
  return Eventually(limit, [&] { return ToldOf(driver).find(text) != std::string::npos; });
}

std::string CsiAgentTest::DriverObject(const std::string& driver, bool attach_required,
                                       const std::string& more) {
  return "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: " + driver +
         "}\nspec:\n  attachRequired: " + (attach_required ? "true" : "false") + "\n" + more;
}

std::string CsiAgentTest::Storage(const CsiTestVolume& volume) {
  const std::string mode = volume.block ? "Block" : "Filesystem";
  const std::string claim_size = volume.claim_size.empty() ? volume.size : volume.claim_size;
  const std::string common = "  accessModes: [" + volume.access_mode + "]\n  volumeMode: " + mode +
                             "\n  storageClassName: \"\"\n";
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + volume.name +
         "}\nspec:\n  capacity: {storage: " + volume.size + "}\n" + common +
         "  persistentVolumeReclaimPolicy: Retain\n  csi:\n    driver: " + volume.driver +
         "\n    volumeHandle: h-" + volume.name + "\n" +
         (volume.read_only ? "    readOnly: true\n" : "") +
         (volume.source.empty() ? "" : "    " + volume.source + "\n") +
         "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + volume.name +
         ", namespace: default}\nspec:\n" + common + "  volumeName: " + volume.name +
         "\n  resources: {requests: {storage: " + claim_size + "}}\n";
}

std::string CsiAgentTest::PodOn(const std::string& pod, const std::vector<CsiTestVolume>& volumes) {
  std::string mounts;
  std::string devices;
  std::string sources;
  for (const CsiTestVolume& volume : volumes) {
    if (volume.block) {
      devices += "{name: " + volume.name + ", devicePath: /dev/" + volume.name + "}, ";
    } else {
      mounts += "{name: " + volume.name + ", mountPath: /" + volume.name + "}, ";
    }
    sources += "  - {name: " + volume.name + ", persistentVolumeClaim: {claimName: " + volume.name +
               (volume.read_only ? ", readOnly: true" : "") + "}}\n";
  }
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + pod +
         ", namespace: default, uid: uid-" + pod +
         "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x" +
         (mounts.empty() ? "" : ", volumeMounts: [" + mounts + "]") +
         (devices.empty() ? "" : ", volumeDevices: [" + devices + "]") + "}\n  volumes:\n" +
         sources;
}

std::string CsiAgentTest::TargetOf(const std::string& pod, const std::string& volume) const {
  return VolumePath("uid-" + pod, "csi", volume) + "/mount";
}

bool CsiAgentTest::WaitSays(const std::string& pod, const std::string& text,
                            Milliseconds limit) const {
  return Eventually(limit, [&] { return Explain(pod).find(text) != std::string::npos; });
}

std::string CsiAgentTest::StateOf(const std::string& pod) {
  const std::optional<v1::Pod> found = FindPod(pod);
  if (!found) return "gone";
  if (found->volumes().empty()) return "no volume";
  const v1::Volume& volume = found->volumes(0);
  return volume.state() + (volume.uncertain() ? ", uncertain" : "") + "; " + volume.device_state() +
         "; running " + volume.running_step();
}

bool CsiAgentTest::WaitState(const std::string& pod, const std::string& text, Milliseconds limit) {
  return Eventually(limit, [&] { return StateOf(pod).find(text) != std::string::npos; });
}

bool CsiAgentTest::RetryUntilPhase(const std::string& pod, const std::string& phase) {
  return Eventually(kPatience, [&] {
    if (WaitPhase(pod, phase, Milliseconds(500))) return true;
    Ctl({"retry", pod});
    return false;
  });
}

bool CsiAgentTest::RetryUntilGone(const std::string& pod) {
  return Eventually(kPatience, [&] {
    if (WaitGone(pod, Milliseconds(500))) return true;
    Ctl({"retry", pod});
    return false;
  });
}

// Directories that are for all drivers, or for one, may stay.
std::vector<std::string> CsiAgentTest::MetricLines(const std::vector<std::string>& texts) const {
  std::vector<std::string> found;
  std::istringstream lines(HttpGet("/metrics"));
  for (std::string line; std::getline(lines, line);) {
    const bool has_all = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return line.find(text) != std::string::npos;
    });
    if (has_all) found.push_back(line);
  }
  return found;
}

}  // namespace volumed
