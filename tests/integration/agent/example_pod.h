// The pod of examples/, which has every volume type that a node has of its own, and what must be
// true of its volumes.
#pragma once

#include <string>

#include "integration/agent/agent_fixture.h"

namespace volumed {

inline constexpr char kExampleUid[] = "6f0c1f0a-5d0e-4c5b-9d55-0d7a4c2b9e11";

std::string ExampleObjects(const std::string& greeting);
// The pod with its hostPath at `host_path`.
std::string ExamplePod(const std::string& host_path);

class ExamplePodTest : public AgentTest {
 protected:
  std::string host_path() const { return scratch() + "/host"; }
  std::string ExampleVolume(const std::string& plugin, const std::string& volume) const {
    return VolumePath(kExampleUid, plugin, volume);
  }
  // As a container does it.
  void WriteForeignFiles(const std::string& text);
  // "" when every volume of the pod is as it has to be; else the first thing that is not.
  std::string ExampleProblem(const std::string& greeting);
  // "" or the foreign file that is not there any more.
  std::string ForeignProblem(const std::string& text);

 private:
  std::string ViewProblem();
};

}  // namespace volumed
