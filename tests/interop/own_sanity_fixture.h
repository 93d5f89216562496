// OwnSanityFixture: the real daemon as a CSI driver with a pool on a filesystem of its own, asked
// by csi-sanity, and what the suite said.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed {

class OwnSanityFixture : public AgentTest {
 protected:
  static constexpr int64_t kGiB = int64_t{1} << 30;
  static constexpr int64_t kMiB = int64_t{1} << 20;

  void SetUp() override;
  void TearDown() override;

  std::string pool() const { return scratch() + "/pool"; }
  std::string endpoint() const { return scratch() + "/csi.sock"; }

  void StartDriver(const std::string& profile, const std::string& level = "1.13");

  // Of cases there is a line for each, in the order of the alphabet: its name, after the names of
  // what it is in, and why.
  struct Outcome {
    int status = -1;      // the suite's exit status
    std::string words;    // its last ones: "102 Passed | 0 Failed | .."; all of them without such
    std::string skipped;  // with the suite's reason
    std::string failed;   // with what the driver has answered, or with what the suite found
  };
  // `more` are flags of the suite.
  Outcome RunSanity(const std::vector<std::string>& more);
  // None fails, and a suite that cleans up leaves nothing.
  void ExpectSanity(const std::vector<std::string>& more, const std::string& words,
                    const std::string& skipped = "");
  void ExpectNothingLeft() const;

  std::string suite_ = "csi-sanity";
  std::string pool_filesystem_ = "xfs";
  std::string class_parameters_ = "csi.storage.k8s.io/fstype: xfs\n";
  std::string changes_ = "directIO: \"false\"\n";
  int64_t volume_bytes_ = 384 * kMiB;
  int64_t grown_bytes_ = 512 * kMiB;

 private:
  std::string LeftInPool() const;

  std::unique_ptr<LoopDevice> disk_;
};

}  // namespace volumed
