// CsiAgentTest: the real daemon, and fake CSI drivers beside it that mount for real
// (fakes/csi_fake_driver.h): where their sockets and volumes lie, and the manifests of pods that
// use them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fakes/csi_fake_driver.h"
#include "fakes/csi_fake_log.h"
#include "fakes/csi_fake_process.h"
#include "integration/agent/agent_fixture.h"

namespace volumed {

// A volume of a driver, and the claim of its name.
struct CsiTestVolume {
  std::string name;
  std::string driver;
  bool block = false;
  bool read_only = false;
  std::string size = "16Mi";
  std::string claim_size = {};  // "": the volume's
  std::string access_mode = "ReadWriteOnce";
  std::string source = {};  // more of the PersistentVolume's source: "nodeStageSecretRef: {..}"
};

class CsiAgentTest : public AgentTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Sockets where the daemon looks for them; its folder and its log in the scratch directory.
  CsiFakeOptions OptionsOf(const std::string& driver) const;
  std::vector<CsiFakeEntry> LogOf(const std::string& driver) const;
  // How often the driver got this RPC.
  int CountOf(const std::string& driver, const std::string& rpc) const;
  // What it was told of its registration last: "yes", why not, or "nothing".
  std::string ToldOf(const std::string& driver) const;
  bool WaitTold(const std::string& driver, const std::string& text,
                Milliseconds limit = kPatience) const;

  // Without attachRequired nobody has to attach; `more` are further lines of its spec.
  static std::string DriverObject(const std::string& driver, bool attach_required,
                                  const std::string& more = "");
  static std::string Storage(const CsiTestVolume& volume);
  static std::string PodOn(const std::string& pod, const std::vector<CsiTestVolume>& volumes);
  static CsiTestVolume VolumeOf(const std::string& name, const std::string& driver) {
    CsiTestVolume volume;
    volume.name = name;
    volume.driver = driver;
    return volume;
  }

  // Where a pod's volume is published.
  std::string TargetOf(const std::string& pod, const std::string& volume) const;
  std::string Explain(const std::string& pod) const { return Ctl({"explain", pod}).output; }
  bool WaitSays(const std::string& pod, const std::string& text,
                Milliseconds limit = kPatience) const;
  // "SettingUp, uncertain; DeviceMounted; running NodePublish": of the pod's first volume.
  std::string StateOf(const std::string& pod);
  bool WaitState(const std::string& pod, const std::string& text, Milliseconds limit = kPatience);
  // It is tried again and again until it is so.
  bool RetryUntilPhase(const std::string& pod, const std::string& phase);
  bool RetryUntilGone(const std::string& pod);
  // Of /metrics: its lines that have all of these texts.
  std::vector<std::string> MetricLines(const std::vector<std::string>& texts) const;

  std::string drivers_directory() const { return scratch() + "/drivers.csi"; }
};

}  // namespace volumed
