// UdevLab: a real udevd for a test, and loop devices that look to it like a cloud's volumes.
//
// udevd lives in a network namespace of this process, so that it hears of block devices and of
// nothing else of the machine's, and others do not hear it; /run/udev and /dev/disk are its own.
// The nodes in /dev are everybody's: their modes, which udevd sets at its start, are put back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace volumed {

// What a lab needs and this machine lacks: "udev", "loop devices", "CAP_SYS_ADMIN"; empty: nothing.
std::string MissingForUdevLab();

// Needs a mount namespace of the process's own. One at a time on a machine: it waits for its turn.
class UdevLab {
 public:
  UdevLab();
  ~UdevLab();
  UdevLab(const UdevLab&) = delete;
  UdevLab& operator=(const UdevLab&) = delete;

  // False when it cannot, or does not listen within ten seconds.
  bool StartUdevd();
  void StopUdevd();

 private:
  struct NodeMode {
    std::string path;
    mode_t mode;
    uid_t uid;
    gid_t gid;
  };

  Descriptor lock_;
  pid_t udevd_ = -1;
  std::vector<std::string> mounted_;
  std::vector<std::string> made_;
  std::vector<NodeMode> modes_;
};

// The link that the lab's rule gives to a loop device on an image ".../vol-<n>".
std::string VolumeLink(const std::string& volume);

// /dev/loop<N>, N above 500: added, and removed by the destructor. Attached to images by calls.
class LabLoop {
 public:
  LabLoop();
  ~LabLoop();
  LabLoop(LabLoop&& other) noexcept;
  LabLoop& operator=(LabLoop&&) = delete;

  bool valid() const { return number_ >= 0; }
  std::string name() const { return "loop" + std::to_string(number_); }
  std::string node() const { return "/dev/" + name(); }

  bool Attach(const std::string& image);
  bool Detach();
  // The image has another size now.
  bool Resize();
  // LOOP_CTL_REMOVE; the kernel waits for nobody who has it open, so this does.
  bool Remove();

 private:
  int number_ = -1;
};

}  // namespace volumed
