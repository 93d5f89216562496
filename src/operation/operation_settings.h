// OperationSettings: how long each step may take. There is one table, so that a configuration file,
// a status page and an explanation all name the same deadlines.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/lanes.h"

namespace volumed {

// This is a value. Threads: any. Each duration is the deadline of one step, counted from when the
// step begins; the time that an operation waits for its lane does not count. A step that passes it
// fails with DeadlineExceeded, most often maybe applied.
struct OperationSettings {
  // Kubelet's bound on a pod's volumes. Source: kubernetes
  // pkg/kubelet/volumemanager/volume_manager.go@v1.36.2 (podAttachAndMountTimeout).
  Duration set_up = std::chrono::seconds(123);
  Duration tear_down = std::chrono::seconds(123);
  // This does not count mkfs and fsck, which are never cut short.
  Duration mount_device = std::chrono::seconds(123);
  Duration unmount_device = std::chrono::seconds(123);
  // This does not count the growth of a filesystem, which is never cut short.
  Duration node_expand = std::chrono::seconds(123);
  Duration attach = std::chrono::seconds(123);
  Duration detach = std::chrono::seconds(123);
  // How long to wait for the device of an attached volume. Source: kubernetes
  // pkg/kubelet/volumemanager/volume_manager.go@v1.36.2 (waitForAttachTimeout).
  Duration wait_for_attach = std::chrono::minutes(10);
  Duration verify_attached = std::chrono::seconds(30);
  // The recycler pod's own timeout is shorter, but grows with the volume.
  Duration reclaim = std::chrono::hours(24);
  Duration provision = std::chrono::seconds(123);
  Duration expand_storage = std::chrono::seconds(123);
  // Directories on the agent's own filesystem.
  Duration make_pod_directories = std::chrono::seconds(30);
  Duration remove_pod_directories = std::chrono::seconds(30);
  // Binds from and to the agent's own filesystem; they touch the volume's filesystem.
  Duration prepare_sub_paths = std::chrono::seconds(30);
  Duration clean_sub_paths = std::chrono::seconds(30);

  // How long a failed operation waits for its next try. Only the settings of the start count.
  Backoff::Options back_off = {};

  // How many operations may have a thread. Of one filesystem, server or driver it is as many as may
  // have workers; of all together it is more, since not each needs a worker all the time. Of the
  // agent's own filesystem it is fewer, so that operations that began first end first: with 8, 12
  // and 32 a burst of 1,000 pods took the same time, while one more pod waited 19, 26 and 52 ms.
  // All are below the number of executor threads (ExecutorOptions::max_threads).
  LaneLimits lanes = {.places = 256, .per_lane = 4, .own_lane = 12, .unbound = 256};
};

struct NamedDeadline {
  std::string_view key;          // in the configuration file
  std::string_view description;  // for people
  Duration OperationSettings::*value;
};

// Every duration above, once.
inline std::vector<NamedDeadline> OperationDeadlines() {
  return {
      {"setUp", "making a volume present", &OperationSettings::set_up},
      {"tearDown", "taking a volume away", &OperationSettings::tear_down},
      {"mountDevice", "mounting the device of a volume", &OperationSettings::mount_device},
      {"unmountDevice", "unmounting the device of a volume", &OperationSettings::unmount_device},
      {"nodeExpand", "making a volume larger", &OperationSettings::node_expand},
      {"attach", "attaching a volume to the node", &OperationSettings::attach},
      {"detach", "detaching a volume from the node, each step", &OperationSettings::detach},
      {"waitForAttach", "waiting for the device of an attached volume",
       &OperationSettings::wait_for_attach},
      {"verifyAttached", "asking a plugin which volumes are attached",
       &OperationSettings::verify_attached},
      {"reclaim", "deleting or recycling a released volume", &OperationSettings::reclaim},
      {"provision", "making a volume for a claim", &OperationSettings::provision},
      {"expandStorage", "making the storage of a volume larger",
       &OperationSettings::expand_storage},
      {"makePodDirectories", "the directories of a pod", &OperationSettings::make_pod_directories},
      {"removePodDirectories", "removing the directories of a pod",
       &OperationSettings::remove_pod_directories},
      {"prepareSubPaths", "the subPath mounts of a volume", &OperationSettings::prepare_sub_paths},
      {"cleanSubPaths", "taking the subPath mounts of a volume away",
       &OperationSettings::clean_sub_paths},
  };
}

}  // namespace volumed
