// PdDriverTest: the real daemon, its workers and volumectl, with the persistent disk driver: its
// claims, and disks that an administrator has made, in pods.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "interop/pd_client.h"
#include "interop/pd_harness.h"

namespace volumed {

class PdDriverTest : public AgentTest {
 protected:
  static constexpr int64_t kGib = int64_t{1} << 30;
  static constexpr unsigned kGroup = 2000;  // of the files of its pods

  void SetUp() override;
  void TearDown() override;
  void UsePd(const std::string& machine_type);
  // The agent, then the driver, and its class "pd".
  void StartAll();

  // A disk that an administrator has made, as a volume with a claim of the same name.
  void ApplyDisk(const std::string& name, const std::string& mode = "Filesystem");
  static std::string Claim(const std::string& name, const std::string& size = "1Gi");
  static std::string PodOn(const std::string& name, const std::string& claim,
                           bool is_block = false);
  std::string PlaceOf(const std::string& pod, const std::string& volume) const;
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  void ApplyAndWait(const std::string& pod, const std::string& claim, bool is_block = false);
  void DeleteAndWait(const std::string& pod);
  // Detached, and unstaged before: the cloud saw no user.
  void ExpectNothingAttached();
  static int64_t FilesystemBytes(const std::string& path);  // -1: none
  // The capacity of a claim's volume, as its driver has measured it and a scrape sees it; -1: none.
  int64_t MeasuredBytes(const std::string& claim) const;
  // The volume that a class has made for the claim.
  std::string VolumeOf(const std::string& claim);

  std::string cloud_;
  std::unique_ptr<PdDriver> pd_;
  std::unique_ptr<PdClient> client_;
};

}  // namespace volumed
